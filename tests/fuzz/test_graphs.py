"""Captured programs: a graph of anything that builders take does what a model of it does, whatever was refused meanwhile."""

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import ftcuda
from ftcuda import ClosedError, CUDAError, LaunchConfig, LegacyPinnedMemoryResource, launch
from ftcuda.graph import GraphBuilder
from tests.kernels import compile_code

DRIVER = tuple(map(int, ftcuda.driver_info().version.split(".")))
pytestmark = [
    pytest.mark.thread_unsafe(reason="hypothesis draws for one thread"),
    pytest.mark.skipif(DRIVER < (12, 8), reason="else and switch need a driver of CUDA 12.8"),
]

ONE = LaunchConfig(grid=1, block=1)
MODULUS = 2**32
CELLS = 64  # of which each branch has one of its own
SOURCE = r"""
extern "C" __global__ void step(unsigned* cell, unsigned value) { *cell = *cell * 3 + value; }
extern "C" __global__ void fold(unsigned* cell, const unsigned* other) { *cell = *cell * 5 + *other; }
"""

NUMBER = st.integers(0, 2**32 - 1)
LEAF = st.one_of(
    st.tuples(st.just("step"), NUMBER),
    st.tuples(st.just("fill"), NUMBER),
    st.just(("call",)),
    st.tuples(st.just("refused"), st.sampled_from(["begin", "end", "complete", "join", "embed"])),
)
PROGRAM = st.recursive(
    st.lists(LEAF, max_size=4),
    lambda inner: st.lists(
        st.one_of(
            LEAF,
            st.tuples(st.just("branch"), st.lists(inner, min_size=1, max_size=3)),
            st.tuples(st.just("embed"), inner),
            st.tuples(st.just("if_then"), st.integers(0, 2), st.lists(inner, min_size=1, max_size=1)),
            st.tuples(st.just("if_else"), st.integers(0, 2), st.lists(inner, min_size=2, max_size=2)),
            st.tuples(st.just("switch"), st.integers(0, 3), st.lists(inner, min_size=1, max_size=3)),
        ),
        max_size=4,
    ),
    max_leaves=12,
)


class Room:
    """Words that host and device reach."""

    def __init__(self):
        resource = LegacyPinnedMemoryResource()
        self.cells = [resource.allocate(4) for _ in range(CELLS)]
        self.words = [np.frombuffer(cell, np.uint32) for cell in self.cells]

    def clear(self):
        for word in self.words:
            word[0] = 0

    def read(self):
        return [int(word[0]) for word in self.words]


class Capture:
    """Gives a program to builders, and notes what it does to the words, in an order that the graph must not contradict."""

    def __init__(self, device, kernels, room):
        self.device, self.kernels, self.room = device, kernels, room
        self.effects, self.taken, self.has_conditions, self.may_call = [], 0, False, True

    def take(self):
        self.taken += 1
        assume(self.taken < CELLS)
        return self.taken

    def run(self, builder, program, cell):
        for name, *arguments in program:
            getattr(self, name)(builder, cell, *arguments)

    def note(self, cell, effect):
        self.effects.append((cell, effect))

    def step(self, builder, cell, value):
        launch(builder, ONE, self.kernels["step"], self.room.cells[cell], value)
        self.note(cell, lambda words: words[cell] * 3 + value)

    def fill(self, builder, cell, value):
        self.room.cells[cell].fill(np.uint32(value), stream=builder)
        self.note(cell, lambda words: value)

    def call(self, builder, cell):
        if not self.may_call:
            return
        word = self.room.words[cell]

        def change():
            word[0] = (int(word[0]) * 7 + 1) % MODULUS

        builder.callback(change)
        self.note(cell, lambda words: words[cell] * 7 + 1)

    def branch(self, builder, cell, programs):
        parts, cells = builder.split(1 + len(programs)), [self.take() for _ in programs]
        for part, program, own in zip(parts[1:], programs, cells, strict=True):
            self.fill(part, own, 0)
            self.run(part, program, own)
        GraphBuilder.join(*parts)
        with pytest.raises(ClosedError):
            launch(parts[1], ONE, self.kernels["step"], self.room.cells[cell], 1)
        for own in cells:
            launch(builder, ONE, self.kernels["fold"], self.room.cells[cell], self.room.cells[own])
            self.note(cell, lambda words, own=own: words[cell] * 5 + words[own])

    def embed(self, builder, cell, program):
        """The driver embeds no conditional node: nothing is added then."""
        child = self.device.create_graph_builder().begin_building()
        done, had, self.has_conditions = len(self.effects), self.has_conditions, False
        self.run(child, program, cell)
        child.end_building()
        if self.has_conditions:
            with pytest.raises(CUDAError):
                builder.embed(child)
            del self.effects[done:]
        else:
            builder.embed(child)
        self.has_conditions = had
        child.close()

    def conditional(self, builder, cell, kind, value, programs):
        condition = builder.create_condition(value)
        made = getattr(builder, kind)(condition, *([len(programs)] if kind == "switch" else []))
        runs = {"if_then": value == 0, "if_else": int(value == 0), "switch": value}[kind]
        self.has_conditions, could_call, self.may_call = True, self.may_call, False
        for number, (body, program) in enumerate(zip([made] if kind == "if_then" else made, programs, strict=True)):
            done = len(self.effects)
            body.begin_building()
            self.run(body, program, cell)
            body.end_building()
            if number != runs:
                del self.effects[done:]
        self.may_call = could_call

    def if_then(self, builder, cell, value, programs):
        self.conditional(builder, cell, "if_then", value, programs)

    def if_else(self, builder, cell, value, programs):
        self.conditional(builder, cell, "if_else", value, programs)

    def switch(self, builder, cell, value, programs):
        self.conditional(builder, cell, "switch", value, programs)

    def refused(self, builder, cell, what):
        other = self.device.create_graph_builder().begin_building()
        kept, part = other.split(2)
        refusals = {
            "begin": builder.begin_building,
            "end": lambda: (builder if builder.is_join_required else other).end_building(),
            "complete": builder.complete,
            "join": lambda: GraphBuilder.join(builder, part),
            "embed": lambda: builder.embed(builder),
        }
        with pytest.raises((RuntimeError, ValueError)):
            refusals[what]()
        GraphBuilder.join(kept, part)
        other.close()


@pytest.fixture(scope="module")
def kernels():
    code = compile_code(SOURCE)
    return {name: code.get_kernel(name) for name in ("step", "fold")}


@pytest.fixture
def room():
    room = Room()
    yield room
    room.words.clear()
    for cell in room.cells:
        cell.close()


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(program=PROGRAM)
def test_programs(program, device, kernels, room, stream):
    room.clear()
    builder = device.create_graph_builder().begin_building()
    capture = Capture(device, kernels, room)
    capture.run(builder, program, 0)
    graph = builder.end_building().complete()
    builder.close()
    wanted = [0] * CELLS
    for _ in range(2):
        graph.launch(stream)
        for cell, effect in capture.effects:
            wanted[cell] = effect(wanted) % MODULUS
    stream.sync()
    graph.close()
    assert room.read() == wanted
