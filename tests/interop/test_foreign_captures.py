"""Work of other libraries in a graph: they get the builder's stream by ``__cuda_stream__``, and their calls are captured."""

import ctypes
from ctypes import byref, c_float, c_int, c_size_t, c_void_p

import numpy as np
import pytest

import ftcuda
from ftcuda import LaunchConfig, launch
from ftcuda.testing import together
from tests.kernels import IS_SIMULATED

SIZE = 16
NO_TRANSPOSE = 0
ONE = LaunchConfig(grid=1, block=1)
pytestmark = pytest.mark.skipif(not ftcuda.Device(0).features.graphs, reason="graphs need a driver of CUDA 11.4")


class ByName:
    """The driver's own functions, as a library would call them that knows nothing of ftcuda."""

    def __init__(self):
        self.library = ctypes.CDLL(ftcuda.driver_info().path)

    def fill(self, stream, address, value, count):
        _, handle = stream.__cuda_stream__()
        assert self.library.cuMemsetD32Async(c_size_t(address), value, c_size_t(count), c_void_p(handle)) == 0


def test_calls_of_the_driver_are_captured(device, stream, code, pinned):
    buffer, view = pinned(np.zeros(4, np.int32))
    driver = ByName()
    device.set_current()
    builder = device.create_graph_builder().begin_building()
    driver.fill(builder, buffer.handle, 7, 4)
    launch(builder, ONE, code.get_kernel("increment"), buffer)
    graph = builder.end_building().complete()
    assert (view == 0).all()
    for _ in range(2):
        graph.launch(stream)
    stream.sync()
    assert view.tolist() == [8, 7, 7, 7]
    graph.close()
    builder.close()


class Cublas:
    """A handle of cuBLAS, of CUDA's own installation."""

    def __init__(self):
        for name in ("libcublas.so.13", "libcublas.so.12", "libcublas.so.11", "libcublas.so"):
            try:
                self.library = ctypes.CDLL(name)
            except OSError:
                continue
            break
        else:
            pytest.skip("there is no cuBLAS")
        self.handle = c_void_p()
        self.call("cublasCreate_v2", byref(self.handle))

    def call(self, name, *arguments):
        assert getattr(self.library, name)(*arguments) == 0, name

    def multiply(self, stream, a, b, c):
        """c = b a, of square matrices as C has them: cuBLAS reads columns."""
        one, zero = c_float(1), c_float(0)
        _, handle = stream.__cuda_stream__()
        self.call("cublasSetStream_v2", self.handle, c_void_p(handle))
        matrices = [c_void_p(int(each.handle)) for each in (a, b, c)]
        sides = [c_int(SIZE)] * 3
        first, second, third = matrices
        self.call(
            "cublasSgemm_v2", self.handle, NO_TRANSPOSE, NO_TRANSPOSE, *sides, byref(one), first, c_int(SIZE), second,
            c_int(SIZE), byref(zero), third, c_int(SIZE),
        )  # fmt: skip

    def close(self):
        self.call("cublasDestroy_v2", self.handle)


@pytest.mark.skipif(IS_SIMULATED, reason="cuBLAS needs a GPU")
@pytest.mark.thread_unsafe(reason="makes threads of its own")
def test_a_library_is_captured_in_each_thread(device, pinned):
    """A product of cuBLAS between two of our own calls, in a graph of each thread's."""

    def serve(index):
        device.set_current()
        cublas, stream = Cublas(), device.create_stream()
        random = np.random.default_rng(index)
        (a, a_view), (b, b_view), (c, c_view) = (
            pinned(random.random((SIZE, SIZE), np.float32)) for _ in range(3)
        )
        cublas.multiply(stream, a, b, c)  # once before: it allocates and loads at first
        stream.sync()
        builder = device.create_graph_builder().begin_building()
        c.fill(0, stream=builder)
        cublas.multiply(builder, a, b, c)
        c.copy_to(a, stream=builder)
        graph = builder.end_building().complete()
        for _ in range(3):
            wanted = b_view.reshape(SIZE, SIZE) @ a_view.reshape(SIZE, SIZE)
            graph.launch(stream)
            stream.sync()
            assert np.allclose(c_view.reshape(SIZE, SIZE), wanted, rtol=1e-4)
            assert (a_view == c_view).all()
        graph.close()
        builder.close()
        stream.close()
        cublas.close()

    together(4, serve)
