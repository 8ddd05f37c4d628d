"""What people write by hand: a queue.Queue, threads that take from it what is there, futures of concurrent.futures."""

import queue
import threading
from concurrent.futures import Future

import numpy as np

LIMIT = 20  # seconds for any wait


class QueueBatcher:
    """Puts requests of many threads together. It never waits for more of them: that would only cost here.

    `computers`: for each of its threads, what is called with an array of at most `most` rows, and returns their
    answers, in memory that the next call may write to.
    """

    def __init__(self, computers, most: int) -> None:
        self._queue: queue.Queue = queue.Queue()
        self._threads = [
            threading.Thread(target=self._run, args=(compute, self._queue, most), daemon=True) for compute in computers
        ]
        for each in self._threads:
            each.start()

    def submit(self, row) -> Future:
        """One row: its answer."""
        return self._put(row[np.newaxis], True)

    def submit_many(self, rows) -> Future:
        """Some rows, at most as many as a batch has: their answers."""
        return self._put(rows, False)

    def __call__(self, row):
        return self.submit(row).result(LIMIT)

    def _put(self, rows, is_one) -> Future:
        future = Future()
        self._queue.put((rows, is_one, future))
        return future

    @staticmethod
    def _run(compute, requests, most) -> None:
        left = None  # the one for which there was no room
        while (first := left or requests.get()) is not None:
            batch, count, left = [first], len(first[0]), None
            while count < most:
                try:
                    each = requests.get_nowait()
                except queue.Empty:
                    break
                if each is None:
                    requests.put(None)
                    break
                if count + len(each[0]) > most:
                    left = each
                    break
                batch.append(each)
                count += len(each[0])
            try:
                answers = compute(np.concatenate([rows for rows, _, _ in batch])).copy()
            except Exception as error:
                for _, _, future in batch:
                    future.set_exception(error)
                continue
            at = 0
            for rows, is_one, future in batch:
                future.set_result(answers[at] if is_one else answers[at : at + len(rows)])
                at += len(rows)

    def close(self) -> None:
        """Ends its threads, after what was submitted."""
        for _ in self._threads:
            self._queue.put(None)
        for each in self._threads:
            each.join(LIMIT)


class QueueBackend:
    """What a backend above a `QueueBatcher` answers; its own part makes the batcher."""

    _batcher: QueueBatcher

    def of(self, case: str, index: int):
        if case == "call":
            return self._batcher
        return self._batcher.submit if case == "load" else getattr(self._batcher, case)

    def figures(self) -> dict:
        return {}

    def close(self) -> None:
        self._batcher.close()
