import pytest

import ftcuda
from ftcuda import CUDAError, Kernel, LaunchConfig, ObjectCode, launch
from tests.conftest import simulated_only
from tests.kernels import SAXPY, compile_code


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


def test_occupancy(device, saxpy, stream):
    occupancy = saxpy.occupancy
    blocks = occupancy.max_active_blocks_per_multiprocessor(256, 0)
    assert 1 <= blocks <= 32
    best = occupancy.max_potential_block_size(0, 0)
    assert best.min_grid_size >= 1 and 32 <= best.max_block_size <= 1024
    assert occupancy.available_dynamic_shared_memory_per_block(1, 256) > 0
    if device.features.cluster_launch:
        config = LaunchConfig(grid=4, cluster=1, block=32)
        assert occupancy.max_potential_cluster_size(config, stream=stream) >= 1
        assert occupancy.max_active_clusters(config, stream=stream) >= 1


def test_foreign_handles(code, saxpy, device):
    wrapped = Kernel.from_handle(saxpy.handle, code)
    if device.features.driver_version >= "12.4":
        assert wrapped.num_arguments == 4
    with pytest.raises(ValueError, match="must not be 0"):
        Kernel.from_handle(0)
    for module in (saxpy, "code", code.code, 0):
        with pytest.raises(TypeError, match="mod must be the ObjectCode"):
            Kernel.from_handle(saxpy.handle, module)
    with pytest.raises(TypeError, match="get_kernel"):
        Kernel()


tells_parameters = pytest.mark.skipif(
    float(ftcuda.driver_info().version) < 12.4, reason="this driver cannot tell a foreign kernel's parameters"
)


@simulated_only
@tells_parameters
def test_an_error_is_not_the_end_of_the_parameters(code, saxpy):
    """Mutant: a kernel that takes any error for the end has two parameters and launches with two arguments, of four."""
    from ftcuda.testing import faults, simulation

    fault = faults.failing("cuFuncGetParamInfo", 2, nth=3, thread=simulation.this_thread())
    with fault, pytest.raises(CUDAError):
        Kernel.from_handle(saxpy.handle, code)
    assert Kernel.from_handle(saxpy.handle, code).num_arguments == 4


@tells_parameters
def test_kernels_of_one_function_share_its_allowance(stream, code, saxpy):
    """Mutant: a kernel that tells the driver its own, smaller number takes the larger one from the other."""
    one, other = (Kernel.from_handle(saxpy.handle, code) for _ in range(2))
    kibi = 1024
    for kernel, size in ((one, 90), (other, 60), (one, 90)):
        launch(stream, LaunchConfig(grid=1, block=1, shmem_size=size * kibi), kernel, 0, 0.0, 0, 0)
    stream.sync()
    saxpy.attributes.max_dynamic_shared_size_bytes = 1 * kibi
    assert saxpy.attributes.max_dynamic_shared_size_bytes >= 90 * kibi


def test_kernels_of_one_function_are_equal(code, saxpy):
    """Mutant: kernels that compare by identity make two entries of one function in a cache of their user's."""
    again, wrapped, other = code.get_kernel("saxpy"), Kernel.from_handle(saxpy.handle, code), code.get_kernel("empty")
    assert saxpy == again == wrapped == saxpy and saxpy is not again
    assert len({saxpy, again, wrapped}) == 1 and hash(saxpy) == hash(again) == hash(wrapped)
    assert saxpy != other and len({saxpy, other}) == 2 and saxpy != saxpy.handle and wrapped != other


def test_kernels_of_two_modules_are_not_equal(code):
    twin = ObjectCode.from_ptx(code.code) if code.code_type == "ptx" else ObjectCode.from_cubin(code.code)
    assert twin.get_kernel("saxpy") != code.get_kernel("saxpy")


def test_one_byte_more_than_48_kib_must_be_asked_for(stream, code):
    """Mutant: allowances-are-asked-for-one-byte-late."""
    kernel = compile_code(SAXPY).get_kernel("empty")  # whose allowance nobody has raised yet
    for size in (48 * 1024, 48 * 1024 + 1):
        launch(stream, LaunchConfig(grid=1, block=1, shmem_size=size), kernel)
    stream.sync()
