"""Other libraries, as they are installed: what they make goes in, what ftcuda makes goes out.

A library that is not installed is skipped and counted. cuda-bindings comes with the extras cu12 and cu13, numpy always; torch,
cupy, warp and cuda.core are tested where they have a wheel for the interpreter, and their device arrays where there is a GPU.
"""

import sys

import numpy as np
import pytest

import ftcuda
from ftcuda import Buffer, Kernel, LaunchConfig, LegacyPinnedMemoryResource, Stream, StridedMemoryView, launch
from ftcuda.testing import together
from tests.kernels import IS_SIMULATED

# Its threads would be given the same buffers and write them; the tests that race make threads of their own.
pytestmark = pytest.mark.thread_unsafe(reason="writes the buffers of its fixtures")

ONE = LaunchConfig(grid=1, block=96)


@pytest.fixture
def scale(interop_code):
    return interop_code.get_kernel("scale")


@pytest.fixture
def filled(device, stream):
    """A buffer of 96 floats, 0, 1, 2 ..., and one for the results."""
    buffers = [device.allocate(384, stream=stream) for _ in range(2)]
    buffers[0].copy_from(np.arange(96, dtype="f4"), stream=stream)
    yield buffers
    for buffer in buffers:
        buffer.close(stream)


def peer(name):
    """The library, if it is installed and there is a GPU for it."""
    if IS_SIMULATED:
        pytest.skip(f"{name} needs a GPU")
    return pytest.importorskip(name, reason=f"{name} is not installed")


@pytest.fixture
def bindings():
    return pytest.importorskip(
        "cuda.bindings.driver", reason="cuda-bindings has no release for this CUDA and interpreter"
    )


def test_handles_of_cuda_bindings(bindings, device, stream, scale, filled):
    source, target = filled
    foreign = Stream.from_handle(bindings.CUstream(stream.handle))
    assert foreign.handle == stream.handle and int(bindings.CUstream(foreign.handle)) == stream.handle
    known = tuple(map(int, ftcuda.driver_info().version.split("."))) >= (12, 4)  # the parameters of a bare function
    kernel = Kernel.from_handle(bindings.CUfunction(scale.handle)) if known else scale
    view = Buffer.from_handle(bindings.CUdeviceptr(target.handle), 384, owner=target)
    launch(foreign, ONE, kernel, bindings.CUdeviceptr(source.handle), view, 2.0, 96)
    host = np.empty(96, "f4")
    view.copy_to(host, stream=foreign)
    assert (host == 2 * np.arange(96)).all()
    view.close()
    for value in (bindings.CUdeviceptr(source.handle), bindings.CUstream(5)):
        with pytest.raises(TypeError, match=r"argument 2 of .* a handle, which is an integer of 8 bytes"):
            launch(foreign, ONE, kernel, source, target, value, 96)
        with pytest.raises(TypeError, match=r"argument 3 of .* a handle, which is an integer of 8 bytes"):
            kernel.bind(ONE, source, target, 2.0, value)
    foreign.close()
    for wrong in ("7", 7.0, None, True):
        with pytest.raises(TypeError, match="int or a handle"):
            Stream.from_handle(wrong)
        with pytest.raises(TypeError, match="int or a handle"):
            Buffer.from_handle(wrong, 8)


BOTH_SIDES = """
import ftcuda
from cuda.bindings import driver

def ok(answer):
    assert answer[0] == driver.CUresult.CUDA_SUCCESS, answer
    return answer[1] if len(answer) == 2 else answer[1:]

device = ftcuda.Device()
device.set_current()
stream = device.create_stream()
event = stream.record()
stream.sync()
ok(driver.cuStreamQuery(driver.CUstream(stream.handle)))
ok(driver.cuStreamWaitEvent(driver.CUstream(stream.handle), driver.CUevent(event.handle), 0))
theirs = ok(driver.cuStreamCreateWithPriority(1, 0))
ours = ftcuda.Stream.from_handle(theirs)
ours.wait(stream)
pointer = ok(driver.cuMemAllocAsync(64, theirs))
buffer = ftcuda.Buffer.from_handle(pointer, 64)
buffer.fill(7, stream=ours)
host = bytearray(64)
buffer.copy_to(host, stream=ours)
assert host == b"\\7" * 64
buffer.close()
ok(driver.cuMemFreeAsync(pointer, theirs))
ours.sync()
ok(driver.cuStreamDestroy(theirs))
print("both sides", ftcuda.driver_info().simulated)
"""


def test_cuda_bindings_and_ftcuda_on_one_driver(bindings, run_python, tmp_path, device):
    if not device.features.memory_pools:
        pytest.skip("the program allocates from a pool")
    environment = {}
    if IS_SIMULATED:  # by the name that cuda-bindings loads
        (tmp_path / "libcuda.so.1").symlink_to(ftcuda.driver_info().path)
        environment["LD_LIBRARY_PATH"] = str(tmp_path)
    assert f"both sides {IS_SIMULATED}" in run_python(BOTH_SIDES, **environment)


def test_numpy(stream, scale, filled):
    source, target = filled
    with LegacyPinnedMemoryResource().allocate(384) as pinned:
        array = np.asarray(StridedMemoryView.from_buffer(pinned, (96,), dtype="f4"))
        launch(stream, ONE, scale, source, array, 2.0, 96)
        stream.sync()
        assert (array == 2 * np.arange(96)).all() and (np.from_dlpack(pinned) == array.view("i1")).all()
        del array
    assert isinstance(memoryview(bytearray(4)).obj, bytearray)


def test_torch_tensors_of_the_host(device, stream):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    tensor = torch.arange(96, dtype=torch.float32)
    assert StridedMemoryView.from_dlpack(tensor, stream).ptr == tensor.data_ptr()

    def round_trip(index):
        mine, theirs, back = device.create_stream(), tensor * (index + 1), torch.empty(96)
        with device.allocate(theirs.nbytes, stream=mine) as buffer:
            for _ in range(10):
                buffer.copy_from(theirs, stream=mine)
                buffer.copy_to(back, stream=mine)
                assert (back == theirs).all()
        mine.close()

    together(4, round_trip)
    with LegacyPinnedMemoryResource().allocate(384) as pinned:
        pinned.copy_from(np.asarray(tensor), stream=stream)
        stream.sync()
        seen = torch.from_numpy(np.asarray(StridedMemoryView.from_buffer(pinned, (96,), dtype="f4")))
        assert seen.data_ptr() == pinned.handle and (seen == tensor).all()
        del seen


def test_torch(stream, scale, filled):
    torch = peer("torch")
    source = torch.arange(96, dtype=torch.float32, device="cuda")
    out = torch.from_dlpack(StridedMemoryView.from_buffer(filled[1], (96,), dtype="f4"))
    launch(stream, ONE, scale, source, out, 2.0, 96)
    stream.sync()
    assert (out.cpu().numpy() == 2 * np.arange(96)).all()
    assert StridedMemoryView(source, stream).ptr == source.data_ptr()
    assert StridedMemoryView.from_cuda_array_interface(source, stream).shape == (96,)
    half = torch.zeros(4, dtype=torch.bfloat16, device="cuda")
    assert StridedMemoryView(half, stream).itemsize == 2
    del out


def test_torch_streams(device, scale, filled):
    torch = peer("torch")
    with torch.cuda.stream(torch.cuda.Stream()):
        theirs = torch.cuda.current_stream()
        ours = Stream.from_handle(theirs.cuda_stream)
        source = torch.full((96,), 3.0, device="cuda")
        launch(ours, ONE, scale, source, filled[1], 2.0, 96)
    device.sync()
    host = np.empty(96, "f4")
    filled[1].copy_to(host, stream=ours)
    assert (host == 6).all()


def test_torch_gibibyte_without_a_copy(device, stream):
    """A round trip of 1 GiB: the address stays, and so does what is written on the way."""
    torch = peer("torch")
    tensor = torch.zeros(2**28, dtype=torch.float32, device="cuda")
    view = StridedMemoryView(tensor, stream)
    back = torch.from_dlpack(view)
    assert view.ptr == tensor.data_ptr() == back.data_ptr() and back.numel() == 2**28
    back[-1] = 7
    assert tensor[-1].item() == 7


def test_cupy(stream, scale, filled):
    cupy = peer("cupy")
    source, out = cupy.arange(96, dtype="f4"), cupy.zeros(96, "f4")
    launch(stream, ONE, scale, source, out, 2.0, 96)
    stream.sync()
    assert (out.get() == 2 * np.arange(96)).all()
    filled[0].copy_to(filled[1], stream=stream)
    stream.sync()
    assert (cupy.asarray(StridedMemoryView.from_buffer(filled[1], (96,), dtype="f4")).get() == np.arange(96)).all()


def test_warp(stream, scale, filled):
    warp = peer("warp")
    warp.init()
    array = warp.array(np.arange(96, dtype="f4"), device="cuda:0")
    launch(stream, ONE, scale, array, filled[1], 2.0, 96)
    host = np.empty(96, "f4")
    filled[1].copy_to(host, stream=stream)
    assert (host == 2 * np.arange(96)).all()
    viewed = warp.from_dlpack(StridedMemoryView.from_buffer(filled[1], (96,), dtype="f4"))
    assert (viewed.numpy() == host).all()


def test_cuda_core(device, stream, scale, filled):
    peer("cuda.core")
    try:
        from cuda.core import Device as TheirDevice
        from cuda.core.utils import StridedMemoryView as TheirView
    except ImportError:
        from cuda.core.experimental import Device as TheirDevice
        from cuda.core.experimental.utils import StridedMemoryView as TheirView
    theirs = TheirDevice(0)
    theirs.set_current()
    their_stream = theirs.create_stream()
    assert device.create_stream(their_stream).handle == int(their_stream.handle)
    assert int(theirs.create_stream(stream).handle) == stream.handle
    view_of = getattr(TheirView, "from_any_interface", TheirView)
    assert view_of(filled[0], stream_ptr=stream.handle).ptr == filled[0].handle
    buffer = theirs.allocate(384, stream=their_stream)
    launch(stream, ONE, scale, filled[0], buffer, 2.0, 96)
    stream.sync()
    assert StridedMemoryView(buffer, stream).ptr == int(buffer.handle)


def test_importing_peers_does_not_turn_the_gil_on(bindings):
    assert sys._is_gil_enabled() == (not hasattr(sys, "abiflags") or "t" not in sys.abiflags)
