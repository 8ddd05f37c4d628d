import pytest

import ftcuda
from ftcuda import Kernel, LaunchConfig, launch
from tests.conftest import IS_SIMULATED


def test_description(saxpy):
    assert saxpy.name == "saxpy" and saxpy.num_arguments == 4
    assert saxpy.arguments_info == [(0, 4), (4, 4), (8, 8), (16, 8)]
    assert saxpy.handle


def test_attributes(device, saxpy):
    attributes = saxpy.attributes
    assert attributes.max_threads_per_block == 1024 and attributes.num_regs > 0
    assert attributes.shared_size_bytes == 0 and attributes.cache_mode_ca is False
    assert attributes[device].binary_version == attributes[0].binary_version
    with pytest.raises(AttributeError, match="no attribute"):
        attributes.colour
    with pytest.raises(AttributeError, match="cannot be set"):
        attributes.num_regs = 3


def test_occupancy(saxpy, stream):
    occupancy = saxpy.occupancy
    blocks = occupancy.max_active_blocks_per_multiprocessor(256, 0)
    assert 1 <= blocks <= 32
    best = occupancy.max_potential_block_size(0, 0)
    assert best.min_grid_size >= 1 and 32 <= best.max_block_size <= 1024
    assert occupancy.available_dynamic_shared_memory_per_block(1, 256) > 0
    if not IS_SIMULATED:
        config = LaunchConfig(grid=4, cluster=1, block=32)
        assert occupancy.max_potential_cluster_size(config, stream=stream) >= 1
        assert occupancy.max_active_clusters(config, stream=stream) >= 1


def test_foreign_handles(saxpy, device):
    wrapped = Kernel.from_handle(saxpy.handle, saxpy)
    if device.features.driver_version >= "12.4":
        assert wrapped.num_arguments == 4
    with pytest.raises(ValueError, match="must not be 0"):
        Kernel.from_handle(0)
    with pytest.raises(TypeError, match="get_kernel"):
        Kernel()


@pytest.mark.skipif(
    IS_SIMULATED and ftcuda.driver_info().version < "12.4",
    reason="this driver cannot tell a foreign kernel's parameters",
)
def test_kernels_of_one_function_share_its_allowance(stream, saxpy):
    """Sabotage: a kernel that tells the driver its own, smaller number takes the larger one from the other."""
    one, other = (Kernel.from_handle(saxpy.handle, saxpy) for _ in range(2))
    kibi = 1024
    for kernel, size in ((one, 90), (other, 60), (one, 90)):
        launch(stream, LaunchConfig(grid=1, block=1, shmem_size=size * kibi), kernel, 0, 0.0, 0, 0)
    stream.sync()
    saxpy.attributes.max_dynamic_shared_size_bytes = 1 * kibi
    assert saxpy.attributes.max_dynamic_shared_size_bytes >= 90 * kibi
