"""Objects to which nobody counts references."""

import sys
import sysconfig
import threading
import weakref

import numpy as np
import pytest

from ftcuda import LaunchConfig, LegacyPinnedMemoryResource, launch, make_immortal
from ftcuda.graph import Parameter
from ftcuda.serving import Batcher
from ftcuda.testing import together
from tests.objects.graphs import needs_12

counted = pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED") or sys.version_info >= (3, 14),
    reason="only CPython 3.13 without the GIL makes objects immortal",
)


@counted
def test_nobody_counts_references(code):
    config, kernel = LaunchConfig(grid=1, block=1), code.get_kernel("increment")
    make_immortal(config, kernel)
    make_immortal(config)
    before = sys.getrefcount(config), sys.getrefcount(kernel)
    more = [config, kernel] * 100
    assert (sys.getrefcount(config), sys.getrefcount(kernel)) == before
    del more


@counted
def test_only_the_maker_may():
    """Another thread would write the count that the maker writes without a lock. Mutant: without the check it does."""
    config = LaunchConfig(grid=1, block=1)

    def elsewhere(index):
        with pytest.raises(RuntimeError, match="only the thread that made it"):
            make_immortal(config)

    together(2, elsewhere)
    make_immortal(config)
    together(2, lambda index: make_immortal(config))  # it is already


def test_while_others_use_it(code, device, stream):
    """Counts that others are amid do not matter. The maker goes on counting as well."""
    counter = device.allocate(4, stream=stream)
    counter.fill(0, stream=stream)
    stream.sync()
    made, done = threading.Barrier(4), threading.Barrier(4)
    shared = {}

    def race(index):
        mine = device.create_stream()
        for _ in range(20):
            if index == 0:
                shared["these"] = LaunchConfig(grid=1, block=1), code.get_kernel("increment")
            made.wait(60)
            config, kernel = shared["these"]
            if index == 0:
                make_immortal(config, kernel)
            for _ in range(20):
                launch(mine, config, kernel, counter)
            done.wait(60)
        mine.sync()
        mine.close()

    together(4, race)
    counter.close()


def test_immortal_buffers_are_closed(run_python):
    program = (
        "import ftcuda, gc\n"
        "device = ftcuda.Device()\n"
        "stream = device.create_stream()\n"
        "buffer = device.allocate(64, stream=stream)\n"
        "ftcuda.make_immortal(buffer, stream, device)\n"
        "buffer.close()\n"
        "assert device.memory_resource.statistics.in_use_count == 0\n"
        "del buffer\n"
        "gc.collect()\n"
        "stream.close()\n"
        "print('done')\n"
    )
    assert run_python(program).split() == ["done"]


@counted
def test_a_batcher(device):
    """It goes on to work, and gives back what it has when it is drained."""
    batcher = Batcher(
        lambda batch: batch["y"].copy_from(batch["x"], stream=batch.stream), inputs={"x": ("int32", (1,))},
        outputs={"y": ("int32", (1,))}, batch_sizes=(1, 4), device=device, capture=False,
    )  # fmt: skip
    make_immortal(batcher)
    before = sys.getrefcount(batcher)
    futures = together(4, lambda index: [batcher.submit(np.array([value], np.int32)) for value in range(50)])
    assert [[int(each.result(20)[0]) for each in mine] for mine in futures] == [list(range(50))] * 4
    assert sys.getrefcount(batcher) == before
    batcher.drain(20)


@counted
@needs_12
def test_graphs(device, stream, code):
    counter = device.allocate(4, stream=stream)
    counter.fill(0, stream=stream)
    builder = device.create_graph_builder().begin_building()
    launch(builder, LaunchConfig(grid=1, block=1), code.get_kernel("increment"), Parameter("counter", counter))
    graph = builder.end_building().complete()
    bound = graph.bind()
    make_immortal(graph, bound)
    before = sys.getrefcount(graph), sys.getrefcount(bound)
    graph.launch(stream)
    bound.launch(stream, counter=counter)
    assert (sys.getrefcount(graph), sys.getrefcount(bound)) == before
    seen = counter.copy_to(LegacyPinnedMemoryResource().allocate(4), stream=stream)
    stream.sync()
    assert int.from_bytes(bytes(seen), "little") == 2
    graph.close()
    counter.close()


@pytest.mark.parametrize("wrong", [None, 3, "kernel", LaunchConfig, object()])
def test_only_objects_of_ftcuda(wrong):
    with pytest.raises(TypeError, match="not an object of ftcuda"):
        make_immortal(LaunchConfig(grid=1, block=1), wrong)


def test_a_proxy_is_no_object_of_ftcuda():
    config = LaunchConfig(grid=1, block=1)
    with pytest.raises(TypeError, match="not an object of ftcuda"):
        make_immortal(weakref.proxy(config))
