"""``python -m benchmarks.fragmentation``: how much a cache holds for what is in use, by replaying one random trace.

ftcuda's cache runs, on the driver at hand. Beside it the policies of two other allocators are replayed from their
published rules. What counts is the most memory that was held at once, by the most that was in use at once.
"""

import argparse
import json
import sys
from bisect import insort
from pathlib import Path

import numpy as np

KIB, MIB = 1 << 10, 1 << 20


def trace(seed: int, steps: int, streams: int, live: int) -> list[tuple[int, int, int]]:
    """Returns ``(stream, key, size)`` for each allocation and ``(stream, key, 0)`` for each free.

    Sizes are spread evenly over the powers of two from 512 bytes to 8 MiB, and most of them come again, as in programs;
    about `live` allocations are in use at once, and phases of growth and of decline follow each other.
    """
    random = np.random.default_rng(seed)
    common = np.exp2(random.uniform(9, 23, 64)).astype(int)
    events: list[tuple[int, int, int]] = []
    in_use: list[tuple[int, int]] = []
    for key in range(steps):
        wanted = live * (1 + 0.5 * np.sin(8 * np.pi * key / steps))
        while len(in_use) >= wanted:
            stream, old = in_use.pop(int(random.integers(len(in_use))))
            events.append((stream, old, 0))
        size = int(random.choice(common)) if random.random() < 0.7 else int(np.exp2(random.uniform(9, 23)))
        stream = int(random.integers(streams))
        in_use.append((stream, key))
        events.append((stream, key, size))
    events += [(stream, key, 0) for stream, key in in_use]
    return events


class Range:
    """A range of memory in which blocks lie: offsets of the free ones, and their sizes."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.free = [(0, size)]

    def is_unused(self) -> bool:
        return self.free == [(0, self.size)]

    def take(self, block: tuple[int, int], size: int) -> int:
        """Takes `size` bytes of a free block; returns where they begin."""
        self.free.remove(block)
        begin, length = block
        if length != size:
            insort(self.free, (begin + size, length - size))
        return begin

    def give(self, begin: int, size: int) -> None:
        """Takes a block back, and merges it with its neighbours."""
        insort(self.free, (begin, size))
        merged: list[tuple[int, int]] = []
        for offset, length in self.free:
            if merged and sum(merged[-1]) == offset:
                merged[-1] = (merged[-1][0], merged[-1][1] + length)
            else:
                merged.append((offset, length))
        self.free = merged


def rounded(size: int, step: int) -> int:
    """Returns the next multiple of `step`."""
    return -(-size // step) * step


class PyTorchPolicy:
    """Segments that are kept, in which the best fit is split.

    c10/cuda/CUDACachingAllocator.cpp: kMinBlockSize, kSmallSize, kSmallBuffer, kLargeBuffer, kMinLargeAlloc and
    kRoundLarge.
    """

    def __init__(self) -> None:
        self.held = 0
        self._segments: dict[tuple[int, bool], list[Range]] = {}
        self._used: dict[int, tuple[Range, int, int]] = {}

    def allocate(self, stream: int, key: int, size: int) -> None:
        size = rounded(size, 512)
        is_small = size <= MIB
        segments = self._segments.setdefault((stream, is_small), [])
        fits = [
            (block[1], number, block) for number, each in enumerate(segments) for block in each.free if block[1] >= size
        ]
        if fits:
            _, number, block = min(fits)
            segment = segments[number]
        else:
            large = 20 * MIB if size < 10 * MIB else rounded(size, 2 * MIB)
            segment = Range(2 * MIB if is_small else large)
            segments.append(segment)
            self.held += segment.size
            block = segment.free[0]
        rest = block[1] - size
        if rest < 512 if is_small else rest <= MIB:  # too little to be split off
            size = block[1]
        self._used[key] = (segment, segment.take(block, size), size)

    def release(self, stream: int, key: int) -> None:
        segment, begin, size = self._used.pop(key)
        segment.give(begin, size)


class ArenaPolicy:
    """Superblocks of 1 MiB for a stream's small blocks, large ones from what all share: rmm's arena_memory_resource.

    The arena takes its memory from the system beforehand; what counts is how far into it anything ever lay.
    """

    def __init__(self) -> None:
        self.held = 0
        self._all = Range(1 << 50)
        self._superblocks: dict[int, list[tuple[Range, int]]] = {}
        self._used: dict[int, tuple[Range, int, int]] = {}

    def _take(self, size: int) -> int:
        begin = self._all.take(next(block for block in self._all.free if block[1] >= size), size)
        self.held = max(self.held, begin + size)
        return begin

    def allocate(self, stream: int, key: int, size: int) -> None:
        size = rounded(size, 256)
        if size > MIB:
            self._used[key] = (self._all, self._take(size), size)
            return
        mine = self._superblocks.setdefault(stream, [])
        fits = [(each, block) for each, _ in mine for block in each.free if block[1] >= size]
        if not fits:
            mine.append((Range(MIB), self._take(MIB)))
            fits = [(mine[-1][0], mine[-1][0].free[0])]
        superblock, block = fits[0]
        self._used[key] = (superblock, superblock.take(block, size), size)

    def release(self, stream: int, key: int) -> None:
        where, begin, size = self._used.pop(key)
        where.give(begin, size)
        mine = self._superblocks.setdefault(stream, [])
        for superblock, begin in mine:
            if superblock is where and where.is_unused():
                self._all.give(begin, MIB)
        self._superblocks[stream] = [each for each in mine if not each[0].is_unused()]


class Ours:
    """ftcuda's cache, as it is."""

    def __init__(self, streams: int) -> None:
        from ftcuda import CachingMemoryResource, Device

        self._cache = CachingMemoryResource()
        self._streams = [Device(0).create_stream() for _ in range(streams)]
        self._used: dict[int, object] = {}

    @property
    def held(self) -> int:
        figures = self._cache.statistics
        return figures.in_use_bytes + figures.cached_bytes

    def allocate(self, stream: int, key: int, size: int) -> None:
        self._used[key] = self._cache.allocate(size, stream=self._streams[stream])

    def release(self, stream: int, key: int) -> None:
        self._used.pop(key).close()

    def hits(self) -> float:
        """Returns the part of the allocations that came from the store."""
        figures = self._cache.statistics
        return figures.hits / (figures.hits + figures.misses)


def replay(allocator, events: list[tuple[int, int, int]]) -> float:
    """Returns the most memory held at once, by the most in use at once."""
    sizes: dict[int, int] = {}
    in_use = most_in_use = most_held = 0
    for stream, key, size in events:
        if size:
            allocator.allocate(stream, key, size)
            sizes[key] = size
            in_use += size
        else:
            allocator.release(stream, key)
            in_use -= sizes.pop(key)
        most_in_use, most_held = max(most_in_use, in_use), max(most_held, allocator.held)
    return most_held / most_in_use


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fragmentation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--streams", type=int, default=4)
    parser.add_argument("--live", type=int, default=120, help="allocations in use at once, about")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = []
    print("| seed | ftcuda | PyTorch's policy | RMM's arena | ftcuda by the best | from the store |\n|" + " --- |" * 6)
    for seed in range(options.seeds):
        events = trace(seed, options.steps, options.streams, options.live)
        ours = Ours(options.streams)
        mine, theirs, arena = replay(ours, events), replay(PyTorchPolicy(), events), replay(ArenaPolicy(), events)
        rows.append({"seed": seed, "ftcuda": mine, "pytorch": theirs, "arena": arena, "hits": ours.hits()})
        ratio = mine / min(theirs, arena)
        print(f"| {seed} | {mine:.3f} | {theirs:.3f} | {arena:.3f} | {ratio:.3f} | {ours.hits():.0%} |", flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
