"""The HTTP example: its answers, what it says of bad requests, its metrics, and that SIGTERM loses nothing."""

import asyncio
import http.client
import json
import os
import socket
import subprocess
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from ftcuda import Device
from ftcuda.serving import Batcher
from tests.conftest import PROFILE
from tests.kernels import IS_SIMULATED

pytest.importorskip("granian", reason="the extra `demo` has it")
pytest.importorskip("prometheus_client", reason="the extra `demo` has it")

from examples.serving.application import MOST_BYTES, Application
from examples.serving.load import Load, Questions, Tally
from examples.serving.pixels import RAW, BadRequestError, pixels_of
from examples.serving.process import HOST, ROOT, running
from examples.serving.server import LATE
from examples.serving.shutdown import faults_of

pytestmark = [
    pytest.mark.skipif(IS_SIMULATED and PROFILE != "13.5", reason="the example compiles for the driver as it is"),
    pytest.mark.skipif(not Device().features.graphs, reason="the example captures its model"),
    pytest.mark.thread_unsafe(reason="runs a server, and counts its requests"),
]

WHITE = [16.0] * 64
JSON = "application/json"


@pytest.fixture(scope="module")
def questions():
    return Questions()


@pytest.fixture(scope="module")
def server():
    with running() as made:
        yield made


def post(server, body, content_type=JSON, path="/predict", method="POST"):
    """The status, the headers and the body of an answer on a connection of its own."""
    connection = http.client.HTTPConnection(HOST, server.port, timeout=30)
    try:
        connection.request(method, path, body, {"content-type": content_type})
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), json.loads(response.read())
    finally:
        connection.close()


@pytest.mark.parametrize("run", ["run_threads", "run_tasks"])
def test_answers_equal_the_reference_and_metrics_count_them(server, questions, run):
    """Half of the requests are JSON, half bytes; what clients count is what the server and its batcher count."""
    before = server.metrics()
    tally = getattr(Load(server.port, questions, 40), run)(4)
    after = server.metrics()
    assert tally == Tally(seconds=tally.seconds) and len(tally.seconds) == 40
    names = ("digits_accepted_total", 'digits_answers_total{status="200"}', 'ftcuda_batcher_rows_total{batcher="digits"}')
    assert [after[name] - before.get(name, 0) for name in names] == [40] * 3
    done = 'ftcuda_batcher_requests_total{batcher="digits",end="done"}'
    total = 'ftcuda_batcher_total_seconds_bucket{batcher="digits",le="+Inf"}'
    assert after[done] == after[total] and after[done] - before[done] == 40


def test_an_answer_has_the_digit_and_the_logits(server, questions):
    status, headers, said = post(server, questions.images[0].astype("<f4").tobytes(), RAW)
    assert status == 200 and headers["content-type"] == JSON
    assert said["digit"] == questions.digits[0] == np.argmax(said["logits"])
    assert np.abs(np.array(said["logits"]) - questions.logits[0]).max() < 1e-3


BAD = {
    "nothing": (b"", JSON),
    "no JSON": (b"{", JSON),
    "no UTF-8": (b"\xff" * 8, JSON),
    "no list": (b"{}", JSON),
    "too few": (json.dumps(WHITE[1:]).encode(), JSON),
    "words": (json.dumps(["16"] * 64).encode(), JSON),
    "truths": (json.dumps([True] * 64).encode(), JSON),
    "lists": (json.dumps([[1]] * 64).encode(), JSON),
    "NaN": (json.dumps([float("nan")] * 64).encode(), JSON),
    "huge": (json.dumps([10**400, *WHITE[1:]]).encode(), JSON),
    "negative": (json.dumps([-1, *WHITE[1:]]).encode(), JSON),
    "too white": (json.dumps([16.5, *WHITE[1:]]).encode(), JSON),
    "deep": (b"[" * 60_000, JSON),
    "a byte too few": (b"\0" * 255, RAW),
    "bytes of NaN": (np.full(64, np.nan, "<f4").tobytes(), RAW),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_request(server, name):
    before = server.metrics()
    body, content_type = BAD[name]
    status, _, said = post(server, body, content_type)
    assert status == 400 and len(said["error"]) > 10
    after, counted = server.metrics(), 'digits_answers_total{status="400"}'
    assert after[counted] - before.get(counted, 0) == 1
    assert after["digits_accepted_total"] - before["digits_accepted_total"] == 1


@pytest.mark.parametrize("header", [("content-length", str(MOST_BYTES + 1)), ("transfer-encoding", "chunked")])
def test_a_body_that_is_not_read(server, header):
    connection = http.client.HTTPConnection(HOST, server.port, timeout=30)
    connection.putrequest("POST", "/predict")
    connection.putheader(*header)
    connection.endheaders()
    response = connection.getresponse()
    assert response.status == 400 and b"needs a content-length" in response.read()
    connection.close()


def test_other_paths(server):
    assert post(server, b"", path="/nothing")[0] == post(server, None, method="GET")[0] == 404
    status, text = server.get("/health")
    said = json.loads(text)
    assert status == 200 and said["free_threaded"] == (not sys._is_gil_enabled()) and said["queued"] == 0


def test_pixels_of_both_kinds_are_the_same():
    numbers = [index % 17 for index in range(64)]
    raw = np.array(numbers, "<f4").tobytes()
    assert pixels_of(raw, RAW).tolist() == pixels_of(json.dumps(numbers).encode(), None).tolist() == numbers
    with pytest.raises(BadRequestError, match="255 bytes are not 64 numbers"):
        pixels_of(raw[1:], RAW)


def test_a_lost_answer_is_noticed(questions):
    said = {"accepted": 3, "answered": 3, "computed": 3, "refused": 1}
    assert faults_of(Tally(seconds=[0.1] * 3, turned_away=[4]), said) == []
    assert faults_of(Tally(seconds=[0.1] * 2, turned_away=[4]), said, before=1) == []
    assert faults_of(Tally(seconds=[0.1] * 2, turned_away=[4], closed_early=[2]), said)[0] == (
        "the server accepted 3 requests, clients have answers to 2"
    )
    assert "clients saw 0" in faults_of(Tally(seconds=[0.1] * 3, closed_early=[4]), said)[0]
    assert "amid" in faults_of(Tally(seconds=[0.1] * 3, turned_away=[4], broken=[5]), said)[0]
    right = {"digit": int(questions.digits[5]), "logits": questions.logits[5].tolist()}
    assert questions.fault(5, 200, json.dumps(right).encode()) is None
    assert "not a" in questions.fault(5, 200, json.dumps(right | {"digit": (right["digit"] + 1) % 10}).encode())
    assert "differs" in questions.fault(5, 200, json.dumps(right | {"logits": [0.0] * 10}).encode())
    assert "status 500" in questions.fault(5, 500, b"{}")


def test_a_client_that_does_not_end_its_request_does_not_keep_the_server():
    """It was not accepted, and granian would wait for it."""
    with running("--patience", "0.5") as server, socket.create_connection((HOST, server.port)) as half:
        half.sendall(b"POST /predict HTTP/1.1\r\nhost: x\r\ncontent-length: 256\r\n\r\n" + bytes(100))
        assert post(server, bytes(256), RAW)[0] == 200  # by now the half has come too
        server.terminate()
        said = server.end()
    assert {name: said[name] for name in ("accepted", "answered", "computed", "refused")} == {
        "accepted": 1, "answered": 1, "computed": 1, "refused": 0,
    }  # fmt: skip


class Request:
    """A request as granian hands it on, and its answer."""

    def __init__(self, body=b"\0" * 256):
        headers = {"content-type": RAW, "content-length": str(len(body))}
        self.scope = SimpleNamespace(method="POST", path="/predict", headers=headers)
        self._body = body
        self.status, self.headers, self.said = None, None, None

    def __call__(self):
        made = asyncio.get_running_loop().create_future()
        made.set_result(self._body)
        return made

    def response_bytes(self, status, headers, body):
        assert self.status is None, "answered twice"
        self.status, self.headers, self.said = status, dict(headers), json.loads(body)


class Slow:
    """A forward that waits while it is closed, and raises what it is told to."""

    def __init__(self):
        self.is_open, self.entered, self.error = threading.Event(), threading.Semaphore(0), None
        self.is_open.set()

    def __call__(self, batch):
        self.entered.release()
        assert self.is_open.wait(20)
        if self.error is not None:
            raise ValueError(self.error)


@pytest.fixture
def slow(device):
    forward = Slow()
    batcher = Batcher(
        forward, inputs={"pixels": ("float32", (64,))}, outputs={"digit": ("int32", ()), "logits": ("float32", (10,))},
        batch_sizes=(1,), max_queued=1, in_flight=1, device=device, capture=False,
    )  # fmt: skip
    forward.entered = threading.Semaphore(0)  # the warm-up is over
    yield forward, batcher
    forward.is_open.set()
    batcher.close()
    batcher.drain(20)


def test_how_requests_end_that_are_not_computed(slow):
    """Two batches are on their way, one image waits, a further one is too many; who waited too long is not begun."""
    forward, batcher = slow
    patient, hasty = Application(batcher, deadline=20), Application(batcher, deadline=0)

    async def main():
        forward.is_open.clear()
        requests = [Request() for _ in range(5)]
        tasks = []
        for request in requests[:2]:
            tasks.append(asyncio.create_task(patient.__rsgi__(request.scope, request)))
            assert await asyncio.to_thread(forward.entered.acquire, timeout=20)
        tasks.append(asyncio.create_task(hasty.__rsgi__(requests[2].scope, requests[2])))
        async with asyncio.timeout(20):
            while batcher.queued == 0:
                await asyncio.sleep(0)
            await patient.__rsgi__(requests[3].scope, requests[3])
            forward.is_open.set()
            await asyncio.gather(*tasks)
            forward.error = "no digit"
            await patient.__rsgi__(requests[4].scope, requests[4])
        return requests

    requests = asyncio.run(main())
    assert [each.status for each in requests] == [200, 200, 504, 503, 500]
    assert requests[3].headers["retry-after"] == "1" and "1 of the 1 rows" in requests[3].said["error"]
    assert requests[4].said["error"] == "forward raised ValueError: no digit"
    account = patient.account()
    assert (account["accepted"], account["answered"], account["computed"]) == (4, 4, 2)


def test_the_end_waits_for_what_was_accepted_and_refuses_the_rest(slow):
    forward, batcher = slow
    application = Application(batcher, deadline=20)

    async def main():
        forward.is_open.clear()
        first, late = Request(), Request()
        task = asyncio.create_task(application.__rsgi__(first.scope, first))
        assert await asyncio.to_thread(forward.entered.acquire, timeout=20)
        ending = asyncio.create_task(asyncio.to_thread(application.end, 0, 20))
        async with asyncio.timeout(20):
            while application._health()[0] == 200:
                await asyncio.sleep(0)
            await application.__rsgi__(late.scope, late)
            assert not ending.done() and first.status is None
            forward.is_open.set()
            await task
            await ending
        return first, late

    first, late = asyncio.run(main())
    assert (first.status, late.status) == (200, 503)
    assert first.headers["connection"] == late.headers["connection"] == "close"
    said = application.close()
    assert {name: said[name] for name in ("accepted", "answered", "computed", "refused")} == {
        "accepted": 1, "answered": 1, "computed": 1, "refused": 1,
    }  # fmt: skip
    assert batcher.is_closed


def test_the_example_runs_and_sigterm_under_load_loses_nothing(tmp_path):
    arguments = ["--requests", "20", "--clients", "1,4", "--plot", tmp_path / "plot.png", "--json", tmp_path / "figures.json"]
    result = subprocess.run(
        [sys.executable, "-m", "examples.serving", *map(str, arguments)],
        cwd=ROOT, capture_output=True, text=True, timeout=240, env=dict(os.environ),
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    assert "each accepted request was answered, and the server ended with exit code 0" in result.stdout
    assert result.stderr.replace(LATE, "").strip() == ""
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert [(row["kind"], row["clients"]) for row in figures["results"]] == [
        ("threads", 1), ("threads", 4), ("tasks", 1), ("tasks", 4),
    ]  # fmt: skip
    sigterm, said = figures["sigterm"], figures["server"]
    assert sigterm["seconds"] >= 64 - 16  # of the requests before SIGTERM each client had one on its way
    assert said["accepted"] == said["answered"] == said["computed"] == 4 * 20 + sigterm["seconds"]
    assert sigterm["turned_away"] + sigterm["refused"] + sigterm["closed_early"] == 16  # each client ended once
    assert (tmp_path / "plot.png").stat().st_size > 1000
