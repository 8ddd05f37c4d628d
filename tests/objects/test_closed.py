"""What is said of a closed object: which one it is."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

from ftcuda import ClosedError, DeviceMemoryResource, LaunchConfig, StridedMemoryView, launch
from ftcuda.testing import together

ONE = LaunchConfig(grid=1, block=1)
SOURCES = Path(__file__).resolve().parents[2] / "src" / "ftcuda"


@pytest.fixture
def closed(device, stream):
    """Returns a closed stream, event or buffer."""

    def make(kind):
        made = {"stream": device.create_stream, "event": device.create_event, "buffer": lambda: device.allocate(8, stream=stream)}[kind]()
        made.close()
        return made

    return make


def said(call):
    with pytest.raises(ClosedError) as caught:
        call()
    return str(caught.value)


def test_a_thing_itself(closed):
    stream, event = closed("stream"), closed("event")
    for call in (stream.sync, stream.record, lambda: stream.is_done, stream.exclusive().__enter__):
        assert said(call).endswith(": the stream is closed")
    for call in (event.sync, lambda: event.is_done):
        assert said(call).endswith(": the event is closed")


def test_no_handle_of_another_is_given_away(device, closed):
    """The driver gives handles again: that of a closed object may be a living one's, and stream 0 is everybody's."""
    stream, event, buffer = closed("stream"), closed("event"), closed("buffer")
    number = hash(stream)
    for call in (lambda: stream.handle, stream.__cuda_stream__):
        assert said(call).endswith("is closed")
    assert event.handle == buffer.handle == 0
    for _ in range(50):  # until the driver gives the closed stream's handle again, if it does
        other = device.create_stream()
        assert other != stream and other.handle
        other.close()
    assert hash(stream) == number


def test_launches_name_the_stream_or_the_argument(device, stream, code, closed, pinned):
    buffer, _ = pinned(np.zeros(4, np.int32))
    kernel = code.get_kernel("saxpy")
    dead = closed("buffer")
    view = StridedMemoryView.from_buffer(dead, (2,), dtype="f4")
    expected = f", {dead!r}, is closed"
    for call in (launch, lambda where, config, kernel, *arguments: kernel.bind(config, *arguments).launch(where)):
        assert said(lambda: call(closed("stream"), ONE, kernel, 1, 2.0, buffer, buffer)).endswith(": the stream is closed")
        assert said(lambda: call(stream, ONE, kernel, 1, 2.0, dead, buffer)).endswith(": argument 2" + expected)
        assert said(lambda: call(stream, ONE, kernel, 1, 2.0, buffer, dead)).endswith(": argument 3" + expected)
        assert said(lambda: call(stream, ONE, kernel, 1, 2.0, buffer, view)).endswith(": argument 3" + expected)


def test_copies_name_their_ends_or_the_stream(device, stream, closed):
    buffer, dead, late = device.allocate(8, stream=stream), closed("buffer"), closed("stream")
    array = np.zeros(2, np.int32)
    assert said(lambda: buffer.copy_to(dead, stream=stream)).endswith(": the destination is closed")
    assert said(lambda: buffer.copy_from(dead, stream=stream)).endswith(": the source is closed")
    assert said(lambda: dead.copy_from(array, stream=stream)).endswith(f": the destination, {dead!r}, is closed")
    assert said(lambda: dead.copy_to(array, stream=stream)).endswith(f": the source, {dead!r}, is closed")
    assert said(lambda: dead.fill(0, stream=stream)).endswith(": the buffer is closed")
    for call in (
        lambda: buffer.copy_to(buffer, stream=late),
        lambda: buffer.copy_from(array, stream=late),
        lambda: buffer.copy_to(array, stream=late),
        lambda: buffer.fill(0, stream=late),
        lambda: buffer.close(late),
    ):
        assert said(call).endswith(f": the stream, {late!r}, is closed")
    buffer.close()


def test_waits_and_records_name_the_stream_or_the_event(device, stream, closed):
    late, dead, event = closed("stream"), closed("event"), device.create_event()
    assert said(lambda: stream.record(dead)).endswith(": the event is closed")
    assert said(lambda: late.record(event)).endswith(": the stream is closed")
    assert said(lambda: stream.wait(dead)).endswith(": the event is closed")
    assert said(lambda: stream.wait(late)).endswith(": the stream is closed")
    assert said(lambda: late.wait(stream)).endswith(": the waiting stream is closed")
    timed = [device.create_event({"timing_enabled": True}) for _ in range(2)]
    timed[0].close()
    assert said(lambda: timed[1] - timed[0]).endswith(": the earlier event is closed")
    assert said(lambda: timed[0] - timed[1]).endswith(": the later event is closed")


def test_allocations_name_the_stream_or_the_resource(device, stream, closed):
    late = closed("stream")
    assert said(lambda: device.allocate(8, stream=late)).endswith(f": the stream, {late!r}, is closed")
    if device.features.memory_pools:
        resource = DeviceMemoryResource(device, {"max_size": 0})
        resource.close()
        assert said(lambda: resource.allocate(8, stream=stream)).endswith(": the memory resource is closed")
        assert said(lambda: resource.trim()).endswith(" resource is closed")


def test_races_name_it_too(device, code, pinned):
    """A stream and a buffer are closed while they are used: the message names one of them, and that one is closed."""
    kernel = code.get_kernel("store")
    for turn in range(30):
        stream = device.create_stream()
        buffer = device.allocate(64, stream=stream)

        def use(stream=stream, buffer=buffer):
            try:
                launch(stream, ONE, kernel, buffer, 1)
            except ClosedError as error:
                name = re.search(r": (the stream|argument 0)\b.* closed$", str(error)).group(1)
                assert (stream if name == "the stream" else buffer).is_closed
                return name

        def act(index, closed=stream if turn % 2 else buffer, use=use):
            return closed.close() if index == 0 else [use() for _ in range(20)]

        together(3, act)
        assert use() == ("the stream" if turn % 2 else "argument 0")
        buffer.close()
        stream.close()


def test_no_message_leaves_it_open():
    """A lint: whoever raises ClosedError says of what."""
    for path in itertools.chain(SOURCES.rglob("*.pyx"), SOURCES.rglob("*.py"), SOURCES.rglob("*.cpp"), SOURCES.rglob("*.hpp")):
        assert "or an object it needs" not in path.read_text(encoding="utf-8"), path
