"""``python -m examples.serving.load``: clients that check every answer, as threads and as tasks of asyncio."""

import argparse
import asyncio
import itertools
import json
import sys
import time
from dataclasses import dataclass, field

import numpy as np

from examples.inference.model import LOGIT_TOLERANCE, check_margins, forward, load_digits, load_weights, split
from examples.serving.clients import TIMEOUT, BrokenError, ClosedEarlyError, RefusedError, TaskClient, ThreadClient
from examples.serving.pixels import RAW
from ftcuda.testing import together

KINDS = ("threads", "tasks")


class Questions:
    """Images that the model has never seen, and what the reference says of each; requests take turns through them."""

    def __init__(self) -> None:
        _, _, self.images, _ = split(*load_digits())
        self.logits = forward(self.images, load_weights())
        self.digits = self.logits.argmax(axis=1)
        check_margins(self.logits)

    def body(self, request: int) -> tuple[str, bytes]:
        """The content type and the body of a request: of JSON and of bytes by turns."""
        image = self.images[request % len(self.images)]
        if request % 2:
            return RAW, image.astype("<f4").tobytes()
        return "application/json", json.dumps(image.tolist()).encode()

    def fault(self, request: int, status: int, body: bytes) -> str | None:
        """What is wrong with the answer to a request."""
        index = request % len(self.images)
        if status != 200:
            return f"request {request} got the status {status}: {body.decode()}"
        said = json.loads(body)
        if said["digit"] != self.digits[index]:
            return f"request {request} is a {self.digits[index]}, not a {said['digit']}"
        difference = float(np.abs(np.array(said["logits"]) - self.logits[index]).max())
        if not difference < LOGIT_TOLERANCE:
            return f"a logit of request {request} differs from the reference by {difference:.3g}"
        return None


@dataclass
class Tally:
    """What clients saw: of each answer how long it took, what was wrong with answers, and requests without one.

    Attributes
    ----------
    turned_away : list of int
        Requests to which the server said that it ends.
    refused, closed_early, broken : list of int
        Requests without a connection, and those whose connection was closed before any byte of an answer, or amid it.
    """

    seconds: list[float] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    turned_away: list[int] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)
    closed_early: list[int] = field(default_factory=list)
    broken: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, tallies: list["Tally"]) -> "Tally":
        """The tally of several clients."""
        return cls(**{name: [each for one in tallies for each in getattr(one, name)] for name in vars(cls())})

    def note(self, request: int, error: Exception) -> None:
        """Notes that a request had no answer."""
        lists = {RefusedError: self.refused, ClosedEarlyError: self.closed_early, BrokenError: self.broken}
        lists[type(error)].append(request)


class Load:
    """Requests that several clients make. A client ends when it is refused.

    Parameters
    ----------
    port : int
        Where the server listens.
    questions : Questions
        What is asked.
    total : int, optional
        How many requests there are; None: until all clients are refused.
    at : int, optional
        The request before which `call` is called, by the client that makes it.
    call : callable, optional
        What that is.
    """

    def __init__(self, port: int, questions: Questions, total: int | None = None, *, at=None, call=None) -> None:
        self._port, self._questions = port, questions
        self._total, self._at, self._call = total, at, call
        self._counter = itertools.count()

    def _requests(self):
        """The requests of one client, of the numbers that all share."""
        for request in self._counter:
            if self._total is not None and request >= self._total:
                return
            if request == self._at:
                self._call()
            yield request

    def _goes_on(self, tally: Tally, request: int, begin: float, answer: tuple[int, bytes]) -> bool:
        """Notes an answer. Whether the client asks again."""
        if answer[0] == 503 and self._total is None:
            tally.turned_away.append(request)
            return False
        tally.seconds.append(time.perf_counter() - begin)
        if (fault := self._questions.fault(request, *answer)) is not None:
            tally.faults.append(fault)
        return True

    def _run_thread(self) -> Tally:
        tally, client = Tally(), ThreadClient(self._port)
        try:
            for request in self._requests():
                body = self._questions.body(request)
                begin = time.perf_counter()
                try:
                    answer = client.ask(*body)
                except (RefusedError, ClosedEarlyError, BrokenError) as error:
                    tally.note(request, error)
                    break
                if not self._goes_on(tally, request, begin, answer):
                    break
        finally:
            client.close()
        return tally

    async def _run_task(self) -> Tally:
        tally, client = Tally(), TaskClient(self._port)
        try:
            for request in self._requests():
                body = self._questions.body(request)
                begin = time.perf_counter()
                try:
                    answer = await client.ask(*body)
                except (RefusedError, ClosedEarlyError, BrokenError) as error:
                    tally.note(request, error)
                    break
                if not self._goes_on(tally, request, begin, answer):
                    break
        finally:
            client.close()
        return tally

    def run_threads(self, clients: int) -> Tally:
        """So many clients, a thread each."""
        return Tally.of(together(clients, lambda _: self._run_thread(), timeout=TIMEOUT))

    def run_tasks(self, clients: int) -> Tally:
        """So many clients, all in one loop."""

        async def main():
            async with asyncio.timeout(TIMEOUT):
                return await asyncio.gather(*(self._run_task() for _ in range(clients)))

        return Tally.of(asyncio.run(main()))


def measure(port: int, questions: Questions, kind: str, clients: int, requests: int) -> dict:
    """Has so many clients make so many requests.

    Raises
    ------
    SystemExit
        An answer was wrong, or did not come.
    """
    load = Load(port, questions, requests)
    begin = time.perf_counter()
    tally = (load.run_threads if kind == "threads" else load.run_tasks)(clients)
    seconds = time.perf_counter() - begin
    if tally.faults:
        raise SystemExit(f"{len(tally.faults)} of {requests} answers are wrong: {tally.faults[0]}")
    if len(tally.seconds) != requests:
        raise SystemExit(f"{requests} requests were made, {len(tally.seconds)} were answered")
    p50, p99 = np.percentile(1e3 * np.array(tally.seconds), (50, 99))
    return {
        "kind": kind, "clients": clients, "requests": requests, "requests_per_second": requests / seconds,
        "p50_ms": float(p50), "p99_ms": float(p99),
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m examples.serving.load", description=__doc__)
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--clients", default="1,4,16", help="numbers of clients, separated by commas")
    parser.add_argument("--requests", type=int, default=400, help="requests for each number of clients, of each kind")
    options = parser.parse_args()
    questions = Questions()
    for kind in KINDS:
        for clients in map(int, options.clients.split(",")):
            print(json.dumps(measure(options.port, questions, kind, clients, options.requests)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
