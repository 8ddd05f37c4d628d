"""Objects made in one thread, used and dropped in another, while a third one collects: a server's normal pattern."""

import gc
import queue
from types import SimpleNamespace

from ftcuda.testing import settle
from ftcuda.testing.hazard import Hazard
from stress.kinds import KINDS, Handed
from stress.ledger import Ledger

EACH = 8  # objects that a thread hands over in a round


class HandedOver(Hazard):
    """Whoever gets an object finds what its maker put there; it is freed once, by its resource, after its last use."""

    oracle = (
        "the values that each object answers with in the second thread; every free, its address and resource against "
        "the allocations; every owner and lender once, after the work with its memory; live handles, on the simulated "
        "driver"
    )
    threads = 3
    unscheduled = "it collects garbage, which happens at no particular place"
    COUNTED = ("stream", "pool", "module", "device_allocation", "pinned_allocation")

    def __init__(self, env):
        super().__init__(env)
        with env.new_batcher() as batcher:
            batcher(env.row)  # now the context has the page of words that streams write
        self.kinds = [kind for kinds in KINDS.values() for kind in kinds]
        self.tried = set()

    def round(self, seed, random):
        before = self.live(*self.COUNTED)
        groups = {}  # of three threads; the last may lack its collector, and who hands over to it
        return SimpleNamespace(before=before, ledger=Ledger(self.env), first=seed % len(self.kinds), groups=groups)

    def act(self, state, index, random):
        group = state.groups.setdefault(
            index // 3, SimpleNamespace(queue=queue.SimpleQueue(), drops=queue.SimpleQueue())
        )
        return (self.make, self.take, self.collect)[index % 3](state, group, random)

    def make(self, state, group, random):
        try:
            chosen = [state.first, *random.integers(len(self.kinds), size=EACH - 1)]
            for number in chosen:
                self.tried.add(int(number))
                made = self.kinds[number](state.ledger)
                if made is not None:
                    group.queue.put(self.packed(made))
                del made
        finally:
            group.queue.put(None)
        return EACH

    def packed(self, made: Handed) -> Handed:
        """How an object is handed over."""
        return made

    def take(self, state, group, random):
        taken = 0
        try:
            while (handed := group.queue.get()) is not None:
                handed.look(handed.thing)
                group.drops.put(True)
                del handed
                taken += 1
        finally:
            group.drops.put(False)
        return taken

    def collect(self, state, group, random):
        times = 0
        while group.drops.get():
            gc.collect()
            times += 1
        return times

    def check(self, state):
        for group in state.groups.values():  # of a group without a second thread this one uses and drops the objects
            while not group.queue.empty():
                if (handed := group.queue.get()) is not None:
                    handed.look(handed.thing)
                del handed
        state.groups.clear()
        settle()  # also what another thread's collection, which ours does not wait for, has still to find
        state.ledger.close()
        gc.collect()
        self.env.let_go(lambda: self.live(*self.COUNTED) == state.before)  # threads of batchers end a moment later
        left = self.live(*self.COUNTED)
        if left != state.before:
            raise AssertionError(f"after all was dropped the driver has {left}, and before had {state.before}")

    def coverage(self):
        return len(self.tried), len(self.kinds)
