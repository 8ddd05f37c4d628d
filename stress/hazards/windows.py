"""Buffers in the memory of other buffers, dropped and collected in any order, by threads of which some hold a lock."""

import gc
import threading
from contextlib import suppress
from types import SimpleNamespace

import numpy as np

from ftcuda import Buffer, ClosedError, MemoryResource, StridedMemoryView, launch
from ftcuda.memory import wait_for_deallocations
from ftcuda.testing.hazard import Hazard


class Blocks(MemoryResource):
    """Gives out device memory under a lock that cannot be taken twice, and reads what is in it when it comes back."""

    is_device_accessible, is_host_accessible = True, False

    def __init__(self, env):
        self.env, self.lock = env, threading.Lock()
        self.device_id = env.device.device_id
        self.stream = env.device.create_stream()
        self.live, self.ended = {}, []

    def allocate(self, size, *, stream=None):
        with self.lock:
            block = self.env.resource.allocate(size, stream=self.stream)
            block.fill(0, stream=self.stream)
            self.stream.sync()
            self.live[block.handle] = SimpleNamespace(block=block, launched=[], value=None)
            return Buffer.from_handle(block.handle, size, mr=self)

    def deallocate(self, ptr, size, *, stream):
        with self.lock:
            record = self.live.pop(ptr)
            host = self.env.pinned.allocate(size)
            record.block.copy_to(host, stream=self.stream)
            self.stream.sync()
            record.value = int(np.frombuffer(host, np.int32)[0])
            record.block.close()
            self.ended.append(record)


class Part(MemoryResource):
    """Gives out parts of a block, which it keeps."""

    is_device_accessible, is_host_accessible, device_id = True, False, 0

    def __init__(self, block):
        self.block = block

    def allocate(self, size, *, stream=None):
        return Buffer.from_handle(self.block.handle, size, mr=self)

    def deallocate(self, ptr, size, *, stream):
        pass


class User:
    """Launches with its window when it ends."""

    def __init__(self, use, window):
        self.use, self.window = use, window

    def __del__(self):
        self.use(self.window)


class Windows(Hazard):
    """A block is given back once, after all work on any window in it, whoever keeps whom."""

    oracle = "how many launches with windows in a block succeeded, and how many its memory shows when it is given back"
    unscheduled = "it collects garbage, which happens at no particular place"

    LEASES = (0, 2, 4)  # the windows whose owner is a buffer or a view: under them the block may be closed

    def round(self, seed, random):
        return SimpleNamespace(resource=Blocks(self.env), shared=[], streams=[])

    def act(self, state, index, random):
        stream = self.env.device.create_stream()
        state.streams.append(stream)
        for _ in range(6):
            block = state.resource.allocate(64)
            launched = state.resource.live[block.handle].launched
            kind = int(random.integers(6))
            window = self.window(block, kind)
            use = self.user_of(stream, launched)
            use(window)
            self.end(state, random, block, window, use, kind in self.LEASES)
            del block, window, use
            if random.integers(8) == 0:
                with state.resource.lock:
                    gc.collect()
        return 6

    def user_of(self, stream, launched):
        """What launches with a window, and notes that it did."""

        def use(window):
            with suppress(ClosedError):
                launch(stream, self.env.one, self.env.increment, window)
                launched.append(1)

        return use

    def window(self, block, kind):
        """A buffer that begins where the block does."""
        address = block.handle
        if kind == 0:
            return Buffer.from_handle(address, 4, owner=block)
        if kind == 1:
            return Buffer.from_handle(address, 4, owner=[block])
        if kind == 2:
            return Buffer.from_handle(address, 4, owner=StridedMemoryView.from_buffer(block, (16,), dtype="i4"))
        if kind == 3:
            return Part(block).allocate(4)
        for _ in range(3):
            block = Buffer.from_handle(address, 64, owner=block if kind == 4 else SimpleNamespace(block=block))
        return block

    def end(self, state, random, block, window, use, has_lease):
        """One of the ways in which both end."""
        fate = int(random.integers(4))
        if fate == 0 and has_lease:
            block.close()
            use(window)
        elif fate == 1:
            cycle = [User(use, window), window, block]
            random.shuffle(cycle)
            cycle.append(cycle)
        elif fate == 2:
            with suppress(IndexError):
                other, of_other = state.shared.pop()
                of_other(other)
            state.shared.append((window, use))
        else:
            window.close()
            block.close()

    def check(self, state):
        state.shared.clear()
        for _ in range(4):  # what is let go of may be the last thing that kept another one
            gc.collect()
            self.env.device.sync()
            wait_for_deallocations(timeout=self.timeout / 2)
        if state.resource.live:
            raise AssertionError(f"{len(state.resource.live)} blocks were not given back")
        for record in state.resource.ended:
            if record.value != len(record.launched):
                raise AssertionError(f"given back after {record.value} of {len(record.launched)} launches")
        for stream in (*state.streams, state.resource.stream):
            stream.close()
