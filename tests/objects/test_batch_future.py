"""What comes of requests: results, failures and cancellations, for threads, callbacks, loops and concurrent.futures."""

import asyncio
import concurrent.futures
import pickle
import threading
from concurrent.futures import CancelledError

import numpy as np
import pytest

from ftcuda.serving import Batcher, BatchFuture

ROW = ("int32", (4,))


class Model:
    """A batcher whose batches wait, once it is held, until it is let go."""

    def __init__(self, device):
        self._may_go = threading.Event()
        self._may_go.set()
        self.batcher = Batcher(
            self._forward, inputs={"x": ROW}, outputs={"y": ROW}, batch_sizes=(1, 4), max_queued=64, in_flight=1,
            device=device, capture=False,
        )  # fmt: skip

    def _forward(self, batch):
        batch["y"].copy_from(batch["x"], stream=batch.stream)
        assert self._may_go.wait(20)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.let_go()
        self.batcher.close()
        self.batcher.drain(20)

    def hold(self):
        self._may_go.clear()

    def let_go(self):
        self._may_go.set()

    def submit(self, value, **options):
        return self.batcher.submit(np.full(4, value, np.int32), **options)

    def behind_others(self, value):
        """Holds it, and submits what waits behind two batches."""
        self.hold()
        busy = [self.submit(0) for _ in range(8)]
        return self.submit(value), busy


def test_a_result_is_its_own_memory(device):
    with Model(device) as model:
        future = model.submit(5)
        first, second = future.result(20), future.result()
        assert first is not second and first.flags.writeable and np.shares_memory(first, second)
        del future
        assert first.tolist() == [5] * 4 and model.submit(6).result(20).tolist() == [6] * 4 and first.tolist() == [5] * 4


def test_waits_end_in_time(device):
    with Model(device) as model:
        future, busy = model.behind_others(1)
        assert not future.done() and not future.running() and not future.cancelled() and "pending" in repr(future)
        with pytest.raises(TimeoutError, match="it goes on"):
            future.result(0.01)
        with pytest.raises(TimeoutError):
            future.exception(0)
        model.let_go()
        assert future.result(20).tolist() == [1] * 4 and future.exception() is None and "done" in repr(future)
        assert all(each.result(20) is not None for each in busy)


def test_a_cancelled_request_leaves_its_neighbours_alone(device):
    with Model(device) as model:
        future, busy = model.behind_others(1)
        neighbour = model.submit(2)
        assert future.cancel() and future.cancel() and future.cancelled() and future.done()
        model.let_go()
        with pytest.raises(CancelledError):
            future.result(20)
        with pytest.raises(CancelledError):
            future.exception(20)
        assert neighbour.result(20).tolist() == [2] * 4 and not neighbour.cancel() and not neighbour.cancelled()
        assert all(each.result(20).tolist() == [0] * 4 for each in busy)
        assert model.batcher.statistics.cancelled == 1


def test_callbacks_come_in_order_however_it_ends(device):
    with Model(device) as model:
        for ends in (lambda future: future.cancel(), lambda future: model.let_go()):
            seen, told = [], threading.Event()
            future, _ = model.behind_others(1)
            for number in range(3):
                future.add_done_callback(lambda it, number=number, seen=seen: seen.append((number, it)))
            future.add_done_callback(lambda it, told=told: told.set())
            assert seen == []
            ends(future)
            assert told.wait(20) and seen == [(number, future) for number in range(3)]
            model.let_go()
        told = threading.Event()
        future.add_done_callback(lambda it: told.set())  # it is over
        assert told.wait(20)
        with pytest.raises(TypeError, match="fn must be callable, not int"):
            future.add_done_callback(3)


def test_concurrent_futures_take_it(device):
    with Model(device) as model:
        model.hold()
        futures = [model.submit(index) for index in range(12)]
        done, pending = concurrent.futures.wait(futures, timeout=0)
        assert not done and pending == set(futures)
        futures[5].cancel()
        assert concurrent.futures.wait(futures, return_when=concurrent.futures.FIRST_COMPLETED).done
        model.let_go()
        seen = {future: future.cancelled() or int(future.result()[0]) for future in concurrent.futures.as_completed(futures, 20)}
        assert seen == {future: True if index == 5 else index for index, future in enumerate(futures)}
        assert concurrent.futures.wait(futures, timeout=0).done == set(futures)  # now that they are


def test_it_can_be_awaited(device):
    with Model(device) as model:
        async def ask(value):
            return (await model.submit(value)).tolist()

        async def main():
            answers = await asyncio.gather(*(ask(value) for value in range(30)))
            future = model.submit(1)
            assert (await future).tolist() == (await future).tolist() == [1] * 4  # also when it is over
            return answers

        assert asyncio.run(main()) == [[value] * 4 for value in range(30)]


def test_a_task_that_is_cancelled_cancels_the_request(device):
    with Model(device) as model:
        async def main():
            future, _ = model.behind_others(1)
            task = asyncio.ensure_future(future)
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            return task.cancelled() and future.cancelled()

        assert asyncio.run(main())


def test_await_raises_what_result_would(device):
    with Model(device) as model:
        async def main():
            future, _ = model.behind_others(1)
            task = asyncio.ensure_future(future)
            await asyncio.sleep(0)
            model.batcher.close()
            with pytest.raises(RuntimeError, match="batcher"):
                await task

        asyncio.run(main())


def test_await_needs_a_loop(device):
    with Model(device) as model:
        future, _ = model.behind_others(1)
        with pytest.raises(RuntimeError, match="neither an asyncio loop nor trio"):
            next(future.__await__())
        assert future.cancelled()


def test_in_trio(device):
    with Model(device) as model:
        trio = pytest.importorskip("trio")

        async def main():
            return (await model.submit(3)).tolist()

        assert trio.run(main) == [3] * 4


def test_nobody_makes_one(device):
    with Model(device) as model:
        with pytest.raises(TypeError, match=r"futures are made by Batcher\.submit"):
            BatchFuture()
        with pytest.raises(TypeError, match="send its result"):
            pickle.dumps(model.submit(1))
        with pytest.raises(TypeError, match="make one there"):
            pickle.dumps(model.batcher)
