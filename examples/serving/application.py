"""The application that granian calls, in RSGI: one coroutine for each request."""

import asyncio
import json
import sys
import threading
import time

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, generate_latest

import ftcuda
from examples.serving.pixels import BadRequestError, pixels_of
from ftcuda import ClosedError, CUDAError, ForwardError, QueueFullError, RequestExpiredError
from ftcuda.serving import Batcher
from ftcuda.serving.prometheus import collector

MOST_BYTES = 1 << 16  # of a body
LOOK = 0.0005  # seconds between two looks whether a body is there
RETRY_AFTER = "1"  # seconds
JSON = "application/json"

# How a request ends of which no digit comes.
STATUSES = (
    (BadRequestError, 400),
    (QueueFullError, 503),
    (ClosedError, 503),
    (RequestExpiredError, 504),
    (ForwardError, 500),
    (CUDAError, 500),
)


class Application:
    """Answers requests, in the loops of any number of workers.

    Parameters
    ----------
    batcher : Batcher
        Who computes, see `make_batcher`.
    deadline : float
        Seconds after which a request is not begun any more.
    """

    def __init__(self, batcher: Batcher, *, deadline: float) -> None:
        self._batcher, self._deadline = batcher, deadline
        self._registry = CollectorRegistry()
        self._registry.register(collector(batcher, "digits"))
        self._accepted = Counter("digits_accepted", "Requests that were accepted", registry=self._registry)
        self._refused = Counter("digits_refused", "Requests that came too late", registry=self._registry)
        self._answers = Counter("digits_answers", "Answers by status", ["status"], registry=self._registry)
        self._routes = {
            ("POST", "/predict"): self._predict,
            ("GET", "/health"): self._health,
            ("GET", "/metrics"): self._metrics,
        }
        self._changed = threading.Condition()  # guards what follows
        self._is_ending = False
        self._in_flight = 0  # accepted, and not answered
        self._last = time.monotonic()  # when a request came

    async def __rsgi__(self, scope, protocol) -> None:
        """Called by granian for each request."""
        route = self._routes.get((scope.method, scope.path))
        if route is None:
            protocol.response_bytes(*answer_of(404, {"error": f"there is no {scope.method} {scope.path}"}))
        elif route != self._predict:
            protocol.response_bytes(*route())
        else:
            await self._answer(protocol, await body_of(scope, protocol), scope.headers.get("content-type"))

    async def _answer(self, protocol, body: bytes | None, content_type: str | None) -> None:
        """Answers a request to `/predict` that is there as a whole."""
        if not self._accept():
            protocol.response_bytes(*self._last_of_connection(answer_of(503, {"error": "the server ends"})))
            return
        try:
            protocol.response_bytes(*self._last_of_connection(await self._predict(body, content_type)))
        finally:
            self._leave()

    def __rsgi_del__(self, loop) -> None:
        """Called by granian in the thread of each worker, when it has ended."""
        if not loop.is_running():
            loop.close()  # a worker's: granian leaves it open

    def end(self, quiet: float, limit: float) -> None:
        """Refuses further requests, and waits until all that were accepted are answered, and clients know.

        Parameters
        ----------
        quiet : float
            Seconds without any request after which no client is left that would ask again.
        limit : float
            Seconds to wait for that at most; for answers it waits as long as it takes.
        """
        begun = time.monotonic()
        with self._changed:
            self._is_ending = True
            while self._in_flight:
                self._changed.wait()
            while (now := time.monotonic()) < min(self._last + quiet, begun + limit):
                self._changed.wait(min(self._last + quiet, begun + limit) - now)

    def close(self) -> dict[str, int]:
        """Drains the batcher. The account of the server's life."""
        self._batcher.drain()
        self._batcher.close()
        return self.account()

    def _accept(self) -> bool:
        with self._changed:
            self._last = time.monotonic()
            if not self._is_ending:
                self._in_flight += 1
            is_accepted = not self._is_ending
        (self._accepted if is_accepted else self._refused).inc()
        return is_accepted

    def _leave(self) -> None:
        with self._changed:
            self._in_flight -= 1
            self._changed.notify_all()

    def _last_of_connection(self, answer):
        """The answer; a client that gets it while the server ends is told to ask elsewhere."""
        status, headers, body = answer
        return status, [*headers, ("connection", "close")] if self._is_ending else headers, body

    def account(self) -> dict[str, int]:
        """How many requests to `/predict` were accepted and answered, or refused, and what the batcher did of them."""
        figures = self._batcher.statistics
        return {
            "accepted": self._total_of("digits_accepted_total"),
            "refused": self._total_of("digits_refused_total"),
            "answered": self._total_of("digits_answers_total"),
            "computed": figures.done,
            "batches": figures.batches,
        }

    def _total_of(self, name: str) -> int:
        samples = (sample for metric in self._registry.collect() for sample in metric.samples)
        return int(sum(sample.value for sample in samples if sample.name == name))

    async def _predict(self, body: bytes | None, content_type: str | None):
        try:
            if body is None:
                raise BadRequestError(f"a body needs a content-length, of {MOST_BYTES} at most")
            image = pixels_of(body, content_type)
            found = await self._batcher.submit(image, deadline=self._deadline)
            answer = answer_of(200, {"digit": int(found["digit"]), "logits": found["logits"].tolist()})
        except tuple(kind for kind, _ in STATUSES) as error:
            status = next(status for kind, status in STATUSES if isinstance(error, kind))
            answer = answer_of(status, {"error": str(error)})
        self._answers.labels(answer[0]).inc()
        return answer

    def _health(self):
        said = {
            "queued": self._batcher.queued,
            "free_threaded": not sys._is_gil_enabled(),
            "driver": ftcuda.driver_info().version,
            "device": self._batcher.devices[0].name,
        }
        return answer_of(503 if self._is_ending else 200, said)

    def _metrics(self):
        return 200, [("content-type", CONTENT_TYPE_LATEST)], generate_latest(self._registry)


def answer_of(status: int, said: dict):
    """A status, headers and a body."""
    headers = [("content-type", JSON)]
    if status == 503:
        headers.append(("retry-after", RETRY_AFTER))
    return status, headers, json.dumps(said).encode()


async def body_of(scope, protocol) -> bytes | None:
    """What a client sends; None, and not read, if it is too long or of unknown length.

    It is asked for until it is there, not awaited: without the GIL granian 2.7.9 never wakes one coroutine in some
    thousand that awaits a body.
    """
    length = scope.headers.get("content-length", "")
    if not length.isdecimal() or int(length) > MOST_BYTES:
        return None
    body = protocol()
    while not body.done():
        await asyncio.sleep(LOOK)
    return body.result()
