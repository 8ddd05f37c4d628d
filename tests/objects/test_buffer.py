import numpy as np
import pytest

from ftcuda import Buffer, ClosedError, LaunchConfig, launch
from tests.conftest import simulated_only


def test_round_trip(device, stream, pinned):
    source, _ = pinned(np.arange(1000, dtype=np.float64))
    target, view = pinned(np.zeros(1000))
    buffer = device.allocate(source.size, stream=stream)
    buffer.copy_from(source, stream=stream)
    buffer.copy_to(stream=stream).copy_to(target, stream=stream)
    stream.sync()
    assert np.array_equal(view, np.arange(1000))
    buffer.close(stream)


@pytest.mark.parametrize(
    ("value", "expected"), [(5, b"\5" * 8), (b"\1\2", b"\1\2" * 4), (np.uint32(0x04030201), b"\1\2\3\4" * 2)]
)
def test_fill(device, stream, pinned, value, expected):
    host, _ = pinned(np.zeros(8, np.uint8))
    buffer = device.allocate(8, stream=stream)
    buffer.fill(value, stream=stream)
    buffer.copy_to(host, stream=stream)
    stream.sync()
    assert bytes(host) == expected


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (256, OverflowError, "0 to 255"),
        (-1, OverflowError, "0 to 255"),
        (b"abc", ValueError, "1, 2 or 4"),
        (b"abcd", ValueError, "multiple"),
        (1.5, TypeError, "bytes-like"),
    ],
)
def test_bad_fills(device, stream, value, error, words):
    buffer = device.allocate(6, stream=stream)
    with pytest.raises(error, match=words):
        buffer.fill(value, stream=stream)


def test_zero_bytes(device, stream):
    buffer = device.allocate(0, stream=stream)
    assert (buffer.handle, buffer.size) == (0, 0)
    buffer.fill(1, stream=stream)
    buffer.copy_to(device.allocate(0, stream=stream), stream=stream)
    buffer.close()


@pytest.mark.parametrize(
    ("size", "error"), [(-1, ValueError), (2**63, ValueError), (1.0, TypeError), (None, TypeError), (True, TypeError)]
)
def test_bad_sizes(device, stream, size, error):
    with pytest.raises(error, match="size"):
        device.allocate(size, stream=stream)


def test_copies_between_sizes_are_refused(device, stream):
    with pytest.raises(ValueError, match="sizes differ"):
        device.allocate(8, stream=stream).copy_to(device.allocate(9, stream=stream), stream=stream)
    with pytest.raises(TypeError, match="buffer protocol"):
        device.allocate(8, stream=stream).copy_from(12345678, stream=stream)


def test_a_view_forbids_close(pinned):
    buffer, view = pinned(np.arange(4))
    with pytest.raises(BufferError, match="still exported"):
        buffer.close()
    del view
    buffer.close()
    assert buffer.is_closed
    with pytest.raises(ClosedError):
        memoryview(buffer)


def test_device_memory_has_no_view(device, stream):
    with pytest.raises(BufferError, match="device memory"):
        memoryview(device.allocate(4, stream=stream))


def test_close_is_idempotent_and_final(device, stream, code):
    with device.allocate(4, stream=stream) as buffer:
        pass
    buffer.close()
    assert buffer.is_closed
    for use in (
        lambda: buffer.fill(0, stream=stream),
        lambda: buffer.copy_to(buffer, stream=stream),
        lambda: launch(stream, LaunchConfig(grid=1, block=1), code.get_kernel("increment"), buffer),
    ):
        with pytest.raises(ClosedError):
            use()


def test_foreign_memory(device, stream, pinned):
    host, view = pinned(np.zeros(4, np.uint8))
    owner = object()
    wrapped = Buffer.from_handle(host.handle, 4, owner=owner)
    wrapped.fill(9, stream=stream)
    wrapped.close()  # waits: the owner may let the memory go now
    assert bytes(host) == b"\t" * 4
    assert wrapped.owner is owner and wrapped.memory_resource is None
    assert not wrapped.is_host_accessible
    with pytest.raises(ValueError, match="no memory resource"):
        Buffer.from_handle(host.handle, 4).copy_to(stream=stream)
    with pytest.raises(TypeError, match="memory resource"):
        Buffer()


def test_the_stream_may_be_closed_first(device, pinned):
    stream, other = device.create_stream(), device.create_stream()
    buffer = device.allocate(64, stream=stream)
    buffer.fill(1, stream=stream)
    other.wait(stream)
    buffer.fill(2, stream=other)
    stream.close()
    other.close()
    buffer.close()


@simulated_only
@pytest.mark.thread_unsafe(reason="counts the streams of the whole process")
def test_a_closed_buffer_keeps_no_stream(device):
    from ftcuda.testing import simulation

    before = simulation.live()["stream"]
    stream = device.create_stream()
    buffer = device.allocate(64, stream=stream)
    stream.close()
    assert simulation.live()["stream"] == before + 1  # the buffer is freed in it
    buffer.close()
    assert simulation.live()["stream"] == before
