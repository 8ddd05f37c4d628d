"""What one round of handing objects over makes, and what must come back of it."""

from collections import Counter
from itertools import count

import numpy as np

from ftcuda import Buffer, LegacyPinnedMemoryResource, MemoryResource, launch
from ftcuda.memory import hooks, wait_for_deallocations
from stress.environment import Environment

TURNS = 5000  # of the kernel `late`, which comes too late for whoever does not wait
BYTES = 64


class Ledger:
    """What is made and given back during a round. Its lists are only appended to."""

    def __init__(self, env: Environment) -> None:
        self.env = env
        self.stream, self.other, self.lent_stream = (env.device.create_stream() for _ in range(3))
        self.numbers = count(1)
        self.pinned = LegacyPinnedMemoryResource()
        self.allocated: list[tuple[int, int]] = []  # addresses, and the ids of their resources, which live as long
        self.freed: list[tuple[int, int]] = []
        self.owners: list[tuple[int, bool]] = []  # that were let go of, and whether the work with their memory was done
        self.lenders: list[tuple[int, bool]] = []  # whose memory was given back, likewise
        self.expected_owners: list[int] = []
        self.expected_lenders: list[int] = []
        self._hooks = [
            hooks.on_allocate(lambda made: self.allocated.append((made.handle, id(made.memory_resource)))),
            hooks.on_free(lambda freed: self.freed.append((freed.handle, id(freed.memory_resource)))),
        ]

    def number(self) -> int:
        """Another value to recognise an object by."""
        return next(self.numbers)

    def word(self) -> "tuple[Buffer, np.ndarray]":
        """Pinned memory of its own, as the device and as the host see it."""
        buffer = self.pinned.allocate(BYTES)
        array = np.frombuffer(buffer, np.int32)
        array[:] = 0
        return buffer, array

    def write_late(self, target: Buffer, value: int, stream: object) -> None:
        """Submits work that writes `value` to the beginning of `target`, and takes some time to do it."""
        launch(stream, self.env.one, self.env.late, target, value, TURNS)

    def contents(self, buffer: Buffer) -> set[int]:
        """The different ints in a buffer after all that was submitted to the round's streams."""
        host, array = self.word()
        with self.other.exclusive():
            self.other.wait(self.stream)
            buffer.copy_to(host, stream=self.other)
            self.other.record().sync()
        return set(array.tolist())

    def close(self) -> None:
        """Ends the round: raises unless everything was freed once, by its own resource, and in time."""
        self.env.device.sync()
        wait_for_deallocations()  # also of what waited for its work
        for stream in (self.stream, self.other, self.lent_stream):
            stream.close()
        for hook in self._hooks:
            hook.remove()
        if twice := Counter(self.freed) - Counter(self.allocated):
            raise AssertionError(f"freed twice, or said to be of another resource (address, resource): {dict(twice)}")
        if never := Counter(self.allocated) - Counter(self.freed):
            raise AssertionError(f"never freed, or said to be of another resource (address, resource): {dict(never)}")
        for what, expected, seen in (
            ("an owner was let go of", self.expected_owners, self.owners),
            ("memory was given back", self.expected_lenders, self.lenders),
        ):
            if Counter(number for number, _ in seen) != Counter(expected):
                raise AssertionError(f"{what}, not each once: {sorted(expected)} expected, {sorted(seen)} seen")
            if early := [number for number, done in seen if not done]:
                raise AssertionError(f"{what} before the last work with it was done: {len(early)} of {len(seen)}")


class Owner:
    """Pinned memory of somebody else. It notes when it is let go of, and whether the last work with it was done."""

    def __init__(self, ledger: Ledger, value: int) -> None:
        self.ledger, self.value = ledger, value
        self.memory, self.array = ledger.word()
        ledger.expected_owners.append(value)

    def __del__(self) -> None:
        self.ledger.owners.append((self.value, int(self.array[0]) == self.value))


class Lender(MemoryResource):
    """A resource as a user writes one, of pinned memory. It notes as an owner does what is given back."""

    is_device_accessible = True
    is_host_accessible = True
    device_id = -1

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.lent: dict[int, tuple[int, Buffer, np.ndarray]] = {}

    def allocate(self, size: int, *, stream: object = None) -> Buffer:
        memory, array = self.ledger.word()
        value = self.ledger.number()
        self.lent[memory.handle] = (value, memory, array)
        self.ledger.expected_lenders.append(value)
        return Buffer.from_handle(memory.handle, size, mr=self, stream=stream)

    def deallocate(self, ptr: int, size: int, *, stream: object) -> None:
        value, _, array = self.lent.pop(ptr)
        self.ledger.lenders.append((value, int(array[0]) == value))
