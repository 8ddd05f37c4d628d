"""The programs in the guides to allocators, to streams, to compiling, to waiting and to batching run."""

import re
from pathlib import Path

import pytest

import ftcuda
from ftcuda import Device
from ftcuda.testing import simulation
from tests.conftest import simulated_only

GUIDES = Path(__file__).parents[2] / "docs" / "guide"
GUIDE = GUIDES / "allocators.md"


@pytest.fixture
def programs():
    """What each program of the guide defines, in their order there."""
    texts = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)

    def run(number):
        names = {}
        exec(compile(texts[number], GUIDE.name, "exec"), names)
        return names

    return run


@pytest.mark.thread_unsafe(reason="another thread may be the one that gives the memory back")
def test_the_allocator(programs, device, stream):
    resource = programs(0)["Leased"]()
    with resource.allocate(64, stream=stream) as buffer:
        buffer.fill(7, stream=stream)
        stream.sync()
        assert bytes(memoryview(buffer)) == b"\7" * 64
    device.sync()
    assert not resource._live


@pytest.mark.thread_unsafe(reason="sets the device's resource")
def test_the_cache(programs, device):
    before = device.memory_resource
    try:
        names = programs(1)
    finally:
        device.memory_resource = before
    assert names["staging"].is_host_accessible


@simulated_only
@pytest.mark.thread_unsafe(reason="watches the races of all threads")
def test_the_order_of_streams():
    """The programs run one after the other, and what the last one says of the missing order is so."""
    names = {}
    texts = re.findall(r"```python\n(.*?)```", (GUIDES / "streams.md").read_text(), re.DOTALL)
    for text in texts:
        exec(compile(text, "streams.md", "exec"), names)
    found = [text.lower() for text in simulation.violations()]  # of the fills; of an address given out again perhaps too
    simulation.clear_violations()
    assert any("no order between streams" in text and ("fill" in text or "memset" in text) for text in found), found
    assert names["stream"].is_nonblocking and not names["waits"].is_nonblocking
    for name in ("stream", "other", "waits"):
        names[name].close()


@pytest.mark.thread_unsafe(reason="captures, and looks at what is left")
def test_the_guide_to_graphs(ptx_fits):
    if tuple(map(int, ftcuda.driver_info().version.split("."))) < (11, 4):
        pytest.skip(reason="graphs need a driver of CUDA 11.4")
    names = {}
    for number, text in enumerate(re.findall(r"```python\n(.*?)```", (GUIDES / "graphs.md").read_text(), re.DOTALL)):
        exec(compile(text, f"graphs.md, {number}", "exec"), names)
    for graph in ("graph", "both"):
        names[graph].close()
    names["builder"].close()
    names["stream"].close()
    names.clear()


@pytest.mark.skipif(ftcuda.nvrtc_version() < (12, 3), reason="there is no nvJitLink of CUDA 11")
def test_compiling(ptx_fits, device):
    names = {}
    for number, text in enumerate(re.findall(r"```python\n(.*?)```", (GUIDES / "compiling.md").read_text(), re.DOTALL)):
        exec(compile(text, f"compiling.md, {number}", "exec"), names)
    assert names["code"].kernel_names == ["k"]


def test_waits(capsys):
    """The programs run one after the other."""
    names = {}
    texts = re.findall(r"```python\n(.*?)```", (GUIDES / "waiting.md").read_text(), re.DOTALL)
    for text in texts:
        exec(compile(text, "waiting.md", "exec"), names)
    assert names["answers"] == list(range(16)) and names["over"].is_set()
    assert capsys.readouterr().out.splitlines()[1] in ("gave up", "done")


@pytest.mark.skipif(not Device().features.graphs, reason="this driver has no graphs")
def test_batching():
    (text,) = re.findall(r"```python\n(.*?)```", (GUIDES / "batching.md").read_text(), re.DOTALL)
    names = {}
    exec(compile(text, "batching.md", "exec"), names)
    assert names["batcher"].statistics.done == 3
