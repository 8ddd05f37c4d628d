"""The benchmark of batchers looks at every answer; it runs with few requests."""

import json
import threading
from concurrent.futures import Future
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.serving import loops, measure, model, report
from benchmarks.serving.queue_batcher import QueueBatcher
from tests.conftest import PROFILE
from tests.kernels import IS_SIMULATED

WIDTHS = (8, 12, 3)
compiles = pytest.mark.skipif(IS_SIMULATED and PROFILE != "13.5", reason="the programs compile for the driver as it is")


def options(**more):
    return {
        "seconds": 0.02, "warm_up": 0.01, "rows_of_a_request": 4, "requests_in_flight": 2, "in_flight_of_a_thread": 3,
    } | more  # fmt: skip


class Backend:
    """Answers at once, by numpy; the `wrong`-th request has another row's answer."""

    def __init__(self, made, wrong=None):
        self._made, self._wrong, self._lock, self._count = made, wrong, threading.Lock(), 0

    def of(self, case, index):
        return self._answer if case == "call" else self._submit

    def figures(self):
        return {"batches": self._count, "batch_rows": self._count, "batch_seconds": 0.0}

    def _answer(self, given):
        with self._lock:
            self._count += 1
            answer = model.computed(self._made.layers, given.reshape(-1, WIDTHS[0]))
            if self._count == self._wrong:
                answer += 0.1
        return answer.reshape(*given.shape[:-1], WIDTHS[-1])

    def _submit(self, given):
        future = Future()
        future.set_result(self._answer(given))
        return future


def test_a_model_is_read_as_it_was_saved(tmp_path):
    made = model.made(WIDTHS, 10)
    model.save(made, tmp_path / "model.bin")
    read = model.load(tmp_path / "model.bin")
    assert read.widths == WIDTHS and np.array_equal(read.rows, made.rows) and np.array_equal(read.answers, made.answers)
    for ours, theirs in zip(made.layers, read.layers, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))


def test_threads_share_no_rows():
    made = model.made(WIDTHS, 11)
    parts = [made.of_thread(index, 3)[0] for index in range(3)]
    assert np.array_equal(np.concatenate(parts), made.rows[:9])


@pytest.mark.parametrize("bad", [0.01, np.nan, np.inf])
def test_a_wrong_answer_is_found(bad):
    answers = np.linspace(-2, 2, 12, dtype=np.float32).reshape(4, 3)
    model.check(list(answers), answers)
    model.check([answers[:2], answers[2:]], answers)
    found = answers.copy()
    found[2, 1] += bad
    with pytest.raises(model.WrongAnswerError, match=r"^1 numbers are wrong; row 2 has"):
        model.check(list(found), answers)
    with pytest.raises(model.WrongAnswerError, match="^12 numbers"):
        model.check(list(np.roll(answers, 1, axis=0)), answers)


@pytest.mark.parametrize("case", ["submit_many", "submit", "call", "load"])
def test_every_answer_is_looked_at(case):
    made = model.made(WIDTHS, 40)
    found = measure.measure(Backend(made), made, case, 2, options(), rate=2000)
    assert found["rate"] > 0 and found["batches"] > 0
    assert len(found["milliseconds"]) == (100 if case in ("call", "load") else 0)
    for wrong in (1, 5):
        with pytest.raises(model.WrongAnswerError):
            measure.measure(Backend(made, wrong), made, case, 2, options(), rate=2000)


def test_a_window_is_kept_and_its_end_is_looked_at():
    asked, answered = [], []

    def submit(row):
        asked.append(row)
        return SimpleNamespace(result=lambda limit: answered.append(len(asked)) or row)

    rows = np.arange(7, dtype=np.float32).reshape(7, 1)
    end = loops.now() + 10_000_000
    assert loops.windowed(submit, list(rows), rows, end, 3) == (len(asked), [])
    assert len(answered) == len(asked) and len(asked) % 6 == 3
    assert answered[:4] == [3, 4, 5, 6] and answered[-3:] == [len(asked)] * 3
    assert [int(row[0]) for row in asked[:9]] == [0, 1, 2, 3, 4, 5, 0, 1, 2]


def test_the_queue_batcher_puts_requests_together():
    sizes = []

    def compute(rows):
        sizes.append(len(rows))
        if (rows < 0).any():
            raise ValueError("negative")
        return 2 * rows

    batcher = QueueBatcher([compute], 4)
    try:
        futures = [batcher.submit_many(np.full((3, 2), value, np.float32)) for value in range(6)]
        single = batcher.submit(np.ones(2, np.float32))
        for value, future in enumerate(futures):
            assert np.array_equal(future.result(20), np.full((3, 2), 2 * value))
        assert single.result(20).tolist() == batcher(np.ones(2, np.float32)).tolist() == [2, 2]
        with pytest.raises(ValueError, match="negative"):
            batcher(-np.ones(2, np.float32))
        assert batcher(np.ones(2, np.float32)).tolist() == [2, 2]
    finally:
        batcher.close()
    assert max(sizes) <= 4


def result():
    times = [each / 1000 for each in range(100)]
    one = {"rate": 4.5e6, "milliseconds": [], "batches": 10, "batch_rows": 2000, "batch_seconds": 3e-4}
    load = one | {"offered": 1e6, "milliseconds": times}
    return {
        "about": {
            "device": "GPU", "processors": 16, "driver": "13.0", "commit": "c", "model": WIDTHS, "batch_sizes": [1, 4],
            "repeats": 1, "simulated": False, "max_delay": 2e-4, "threads_of": {"load": 12},
        },
        "rows": [
            {"backend": "ftcuda 1, CPython 3 without the GIL", "case": "submit_many", "threads": 16, "measured": [one]},
            {"backend": "ftcuda 1, CPython 3 with the GIL", "case": "submit_many", "threads": 16, "measured": [one]},
            {"backend": "C++", "case": "plain", "threads": 16, "measured": []},
        ],
        "parts": [0.5],
        "load": [load],
    }  # fmt: skip


def test_goals_are_of_ftcuda_without_the_gil():
    text = report.table(result())
    assert "without the GIL | submit_many | 16 | 4,500,000 |  |  | 200.0 | 4 M: met |" in text
    assert "with the GIL | submit_many | 16 | 4,500,000 |  |  | 200.0 |  |" in text
    assert "| C++ | plain | 16 | failed |" in text
    assert "At half load p99 is 98 us; max_delay and two batches are 260: met." in text


def test_results_are_written_and_drawn_anew(tmp_path, monkeypatch):
    (tmp_path / "serving.json").write_text(json.dumps(result()))
    monkeypatch.setattr("sys.argv", ["report", str(tmp_path)])
    assert report.main() == 0
    assert (tmp_path / "latency.png").read_bytes().startswith(b"\x89PNG")
    assert "4 M: met" in (tmp_path / "serving.md").read_text()


KERNELS = """
import sys
from pathlib import Path
import numpy as np
from benchmarks.serving.model import check, kernel_of, made
from benchmarks.serving.of_ftcuda import Perceptron
from ftcuda import LegacyPinnedMemoryResource, Program

image = Program(Path("benchmarks/serving/model.cu").read_text(), "c++").compile().code + b"\\0"
model = made((40, 70, 33, 5), 35)
perceptron = Perceptron(model, image)
stream = perceptron.device.create_stream()
for rows in (1, 16, 17, 35):
    x, y = (perceptron.device.allocate(4 * rows * width, stream=stream) for width in (40, 5))
    x.copy_from(model.rows[:rows], stream=stream)
    perceptron.prepared(rows, x, y)(stream)
    answers = np.empty((rows, 5), np.float32)
    y.copy_to(answers, stream=stream)
    stream.sync()
    check([answers], model.answers[:rows])
print({kernel_of(rows, outputs)[0] for rows in (16, 17) for outputs in (31, 32)})
"""


@compiles
def test_both_kernels_answer_as_numpy_does(run_python):
    assert "few_rows" in (said := run_python(KERNELS)) and "many_rows" in said


BENCHMARK = """
import sys
from benchmarks.serving.__main__ import main

sys.argv[1:] = (
    "--threads 2 --seconds 0.05 --cases submit --model 4,6,3 --rows 2 --in-flight 2 --known 128"
    " --batch-sizes 1,4 --load 0.5 --senders 2 --plot --output {folder}"
).split()
sys.exit(main())
"""


@compiles
@pytest.mark.thread_unsafe(reason="its processes use all processors")
def test_the_benchmark_runs_and_writes_its_results(run_python, tmp_path):
    run_python(BENCHMARK.replace("{folder}", str(tmp_path)))
    found = json.loads((tmp_path / "serving.json").read_text())
    cases = {(row["backend"].split()[0], row["case"]) for row in found["rows"] if row["measured"][0]["rate"] > 0}
    ours = {(name, "submit") for name in ("ftcuda", "queue.Queue")}
    native = {("C++", f"{kind}, batches of {rows}") for kind, rows in (("plain", 1), ("graph", 1), ("graph", 2), ("graph", 4))}
    assert cases >= ours | native
    assert found["load"][0]["rate"] > 0 and (tmp_path / "latency.png").exists()
