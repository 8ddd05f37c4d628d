"""Objects that were not made as they should be: clear errors, and nothing dereferenced that is not there."""

import contextlib
import inspect

import numpy as np
import pytest
from ftcuda._objects.support.public_class import public_classes, stand_above

import ftcuda
import ftcuda.memory
import ftcuda.utils
from ftcuda import (
    BoundLaunch,
    Buffer,
    CachingMemoryResource,
    Device,
    Event,
    HostDeviceBuffer,
    Kernel,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    LimitingMemoryResource,
    ObjectCode,
    Program,
    StatisticsMemoryResource,
    Stream,
    StridedMemoryView,
    TensorMapDescriptor,
    TrackingMemoryResource,
    launch,
)

MADE_BY_OTHERS = (BoundLaunch, Buffer, Event, Kernel, ObjectCode, Stream, TensorMapDescriptor)
HEAP_TYPE = 1 << 9  # of a type's __flags__: written in Python
NATIVE = {
    each
    for module in (ftcuda, ftcuda.memory, ftcuda.utils)
    for each in vars(module).values()
    if inspect.isclass(each) and not each.__flags__ & HEAP_TYPE and each.__module__.startswith("ftcuda")
}


@pytest.mark.parametrize("kind", MADE_BY_OTHERS)
def test_only_ftcuda_makes_these(kind):
    subclass = type("Mine", (kind,), {"__init__": lambda self: None})
    for make in (kind, lambda: kind(1, name="a"), lambda: kind.__new__(kind), subclass, lambda: kind.__new__(subclass)):
        with pytest.raises(TypeError, match="made by"):
            make()


HANDLES = public_classes()


def test_each_handle_has_its_public_class():
    assert set(HANDLES.values()) == {Buffer, Device, Kernel, ObjectCode, StridedMemoryView}
    for handle, kind in HANDLES.items():
        assert kind.__base__ is handle


def test_a_class_stands_above_a_handle_once():
    handle = Buffer.__base__
    for public, below, words in (
        (Buffer, handle, "stands above .* already"),
        (int, handle, "stands above .* already"),
        (Buffer, Buffer, "not declared as a handle"),
        (bool, int, "not declared as a handle"),
    ):
        with pytest.raises(TypeError, match=words):
            stand_above(public, below)
    assert public_classes() == HANDLES


@pytest.mark.parametrize("kind", sorted(HANDLES.values(), key=lambda kind: kind.__name__))
def test_nobody_makes_the_handle_below_a_public_class(kind):
    handle = kind.__base__
    assert handle.__name__.endswith("Handle")
    for make in (handle, lambda: handle.__new__(handle), lambda: type("Mine", (handle,), {})()):
        with pytest.raises(TypeError, match="Handle' is not an acceptable base type|made by|found by"):
            make()


@pytest.mark.parametrize("kind", sorted(NATIVE - {*MADE_BY_OTHERS, Device, LaunchConfig}, key=lambda kind: kind.__name__))
def test_a_subclass_that_forgets_to_call_init(kind):
    unmade = type("Mine", (kind,), {"__init__": lambda self: None})()
    for name in sorted(set(dir(kind)) - set(dir(object))):
        for arguments in ((), (1,), (unmade,)):
            with contextlib.suppress(Exception):  # any will do: the process lives
                member = getattr(unmade, name)
                if callable(member):
                    member(*arguments)
    repr(unmade)


def test_it_says_what_was_forgotten():
    class Mine(StatisticsMemoryResource):
        def __init__(self):
            pass

    with pytest.raises(TypeError, match=r"Mine was not made: its __init__ must call super\(\).__init__"):
        _ = Mine().statistics
    with pytest.raises(TypeError, match="was not made"):
        Mine().allocate(8)


def test_a_view_that_was_not_made_is_no_argument(stream, code, device):
    """Mutant: the kernel gets a null pointer."""
    kernel, config = code.get_kernel("increment"), LaunchConfig(grid=1, block=1)
    unmade, buffer = StridedMemoryView.__new__(StridedMemoryView), device.allocate(4, stream=stream)
    calls = (
        lambda: launch(stream, config, kernel, unmade),
        lambda: kernel.bind(config, unmade),
        lambda: buffer.copy_from(unmade, stream=stream),
        lambda: unmade.copy_from(unmade, stream),
        lambda: unmade.__dlpack__(),
        lambda: unmade.__cuda_array_interface__,
        lambda: np.asarray(unmade),
    )
    for call in calls:
        with pytest.raises(TypeError, match="StridedMemoryView was not made"):
            call()
    stream.sync()


def test_nothing_is_made_twice(stream):
    device = Device()
    made = [
        LegacyPinnedMemoryResource(),
        CachingMemoryResource(LegacyPinnedMemoryResource()),
        LimitingMemoryResource(LegacyPinnedMemoryResource(), 64),
        TrackingMemoryResource(LegacyPinnedMemoryResource()),
        StridedMemoryView.from_buffer(device.allocate(8, stream=stream), (8,), itemsize=1),
        Program("", "c++"),
        HostDeviceBuffer(8, stream=stream),
    ]
    upstream = (LegacyPinnedMemoryResource(),)
    again = [(), upstream, (*upstream, 8), upstream, (), ("", "c++"), (8,)]
    for each, arguments in zip(made, again, strict=True):
        with pytest.raises(TypeError, match="constant: make another one"):
            each.__init__(*arguments)
    assert made[2].allocation_limit == 64
    made[2].allocate(64).close()
