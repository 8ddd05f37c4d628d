"""Batchers: what leaves when and together with what, and that each request ends once, with its own answer."""

import gc
import threading
import weakref
from contextlib import contextmanager

import numpy as np
import pytest

import ftcuda
from ftcuda import ClosedError, Device, ForwardError, QueueFullError, RequestExpiredError, StridedMemoryView
from ftcuda.serving import Batch, Batcher, batched

ROW = ("int32", (4,))


def copy(batch):
    """Rows are their own answers."""
    batch["y"].copy_from(batch["x"], stream=batch.stream)


class Gate:
    """A forward that waits, once it is closed, until it is opened; it notes the sizes of batches."""

    def __init__(self):
        self.is_open = threading.Event()
        self.is_open.set()
        self.sizes = []
        self.rows = []

    def __call__(self, batch):
        if not self.is_open.is_set():
            self.sizes.append(batch.size)
        copy(batch)
        assert self.is_open.wait(20)


@contextmanager
def made(device, forward=copy, *, capture=False, **options):
    options = {"batch_sizes": (1, 4), "max_queued": 64, "in_flight": 1, **options}
    batcher = Batcher(forward, inputs={"x": ROW}, outputs={"y": ROW}, device=device, capture=capture, **options)
    try:
        yield batcher
    finally:
        batcher.close()
        batcher.drain(20)


def row(value):
    return np.full(4, value, np.int32)


@pytest.fixture(params=[True, False], ids=["captured", "called"])
def capture(request, device):
    if request.param and not device.features.graphs:
        pytest.skip("this driver has no graphs")
    return request.param


def test_a_row_and_rows(device, capture):
    with made(device, capture=capture) as batcher:
        assert batcher(row(7)).tolist() == [7, 7, 7, 7]
        rows = np.arange(4 * 11, dtype=np.int32).reshape(11, 4)
        answer = batcher.submit_many(rows).result()
        assert answer.dtype == np.int32 and np.array_equal(answer, rows)  # over three batches
        nothing = batcher.submit_many(rows[:0])
        assert nothing.done() and nothing.result().shape == (0, 4)
        assert batcher.submit([1, 2, 3, 4]).result().tolist() == [1, 2, 3, 4]
        assert np.array_equal(batcher.submit_many(rows[::2]).result(), rows[::2])  # not contiguous


def test_threads_get_their_own_answers(device, capture):
    wrong = []

    def ask(index):
        for turn in range(50):
            value = index * 1000 + turn
            if batcher(row(value)).tolist() != [value] * 4:
                wrong.append(value)

    with made(device, capture=capture, batch_sizes=(1, 2, 8), in_flight=2) as batcher:
        threads = [threading.Thread(target=ask, args=(index,)) for index in range(6)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        figures = batcher.statistics
    assert wrong == []
    assert figures.requests == figures.rows == figures.done == figures.batch_rows == 300
    assert figures.batches == figures.left_full + figures.left_by_delay + figures.left_by_idleness
    assert figures.total.count == figures.waiting.count == 300 and figures.device.count == figures.batches


def test_several_arrays_of_any_type(device, capture):
    def forward(batch):
        batch["b"].copy_from(batch["a"], stream=batch.stream)
        batch.outputs["n"].copy_from(batch.inputs["m"], stream=batch.stream)

    inputs = {"a": ("float16", (2, 3)), "m": ("complex128", ())}
    outputs = {"b": ("float16", (2, 3)), "n": ("complex128", ())}
    with Batcher(forward, inputs=inputs, outputs=outputs, batch_sizes=(2,), device=device, capture=capture) as batcher:
        a, m = np.arange(6, dtype=np.float16).reshape(2, 3), np.complex128(1 + 2j)
        answer = batcher({"a": a, "m": m})
        assert np.array_equal(answer["b"], a) and answer["n"].shape == () and answer["n"] == m
        many = batcher.submit_many({"a": np.stack([a, a + 1, a + 2]), "m": np.arange(3, dtype=np.complex128)}).result()
        assert np.array_equal(many["b"][2], a + 2) and many["n"].tolist() == [0, 1, 2]
        with pytest.raises(TypeError, match="an array for each of: a, m"):
            batcher({"a": a})
        with pytest.raises(ValueError, match=r"different numbers of rows: \[1, 2\]"):
            batcher.submit_many({"a": a[None], "m": np.zeros(2, np.complex128)})


def test_forward_gets_a_batch(device):
    seen = []

    def forward(batch):
        seen.append((batch.size, batch.device, batch.inputs["x"].shape, batch["y"].dtype, type(batch.stream)))
        copy(batch)

    with made(device, forward, batch_sizes=(2, 5)):
        assert repr(Batch(3, None, device, {}, {})) == f"<Batch of 3 rows on {device!r}>"
    assert seen[:2] == [(size, device, (size, 4), np.dtype(np.int32), ftcuda.Stream) for size in (2, 5)]
    assert len(seen) == 4  # each size in each of two lanes


def test_what_waits_leaves_together(device):
    """Behind a batch that is on the device: a full one of four, and what is left, padded to four."""
    gate = Gate()
    with made(device, gate, max_delay=0) as batcher:
        gate.is_open.clear()
        first = batcher.submit(row(0))
        second = batcher.submit_many(np.arange(24, dtype=np.int32).reshape(6, 4))
        gate.is_open.set()
        assert first.result(20).tolist() == [0] * 4 and second.result(20)[5].tolist() == [20, 21, 22, 23]
        figures = batcher.statistics
    assert figures.batch_rows == 7 and figures.done == 2


def test_rows_of_nobody_are_zeros(device):
    seen = []

    def forward(batch):
        copy(batch)
        batch.stream.sync()
        host = np.empty((batch.size, 4), np.int32)
        batch["x"].copy_to(StridedMemoryView.from_array_interface(host), stream=batch.stream)
        batch.stream.sync()
        seen.append(host)

    with made(device, forward, batch_sizes=(4,)) as batcher:
        seen.clear()
        assert batcher.submit_many(np.full((4, 4), 9, np.int32)).result(20).shape == (4, 4)
        assert batcher(row(5)).tolist() == [5] * 4
        assert batcher.statistics.padding == 3
    assert seen[-1].tolist() == [[5] * 4] + [[0] * 4] * 3


def test_a_full_queue_refuses_or_waits(device):
    gate = Gate()
    with made(device, gate, max_queued=4) as batcher:
        gate.is_open.clear()
        started = [batcher.submit(row(0))]
        while batcher.queued:  # until the first is on the device
            threading.Event().wait(0.001)
        started.append(batcher.submit(row(1)))
        while batcher.queued:  # a second lane
            threading.Event().wait(0.001)
        waiting = batcher.submit_many(np.ones((4, 4), np.int32))
        with pytest.raises(QueueFullError, match="4 of the 4 rows"):
            batcher.submit(row(2))
        with pytest.raises(QueueFullError):
            batcher.submit(row(2), timeout=0.01)
        with pytest.raises(ValueError, match="5 rows are more than the 4"):
            batcher.submit_many(np.ones((5, 4), np.int32))
        figures = batcher.statistics
        assert (figures.requests, figures.rows, figures.rejected) == (3, 6, 2)
        gate.is_open.set()
        assert batcher(row(3)).tolist() == [3] * 4
        assert waiting.result(20).shape == (4, 4) and [each.result(20)[0] for each in started] == [0, 1]


def test_forward_fails_its_own_batch_alone(device):
    fails = threading.Event()

    def forward(batch):
        if fails.is_set():
            raise ValueError("not this one")
        copy(batch)

    with made(device, forward) as batcher:
        fails.set()
        future = batcher.submit(row(1))
        with pytest.raises(ForwardError, match="forward raised ValueError: not this one") as caught:
            future.result(20)
        assert isinstance(caught.value.__cause__, ValueError)
        assert isinstance(future.exception(), ForwardError) and future.exception() is not caught.value
        fails.clear()
        assert batcher(row(2)).tolist() == [2] * 4
        assert batcher.statistics.failed == 1 and batcher.statistics.done == 1


class Unspeakable(Exception):
    """Has no text."""

    def __str__(self):
        raise ValueError("no text")


def test_an_exception_without_a_text(device):
    fails = threading.Event()

    def forward(batch):
        if fails.is_set():
            raise Unspeakable

    with made(device, forward) as batcher:
        fails.set()
        with pytest.raises(ForwardError, match="forward raised Unspeakable$") as caught:
            batcher(row(1))
        assert type(caught.value.__cause__) is Unspeakable


def test_what_forward_raises_in_the_warm_up_is_raised(device, capture):
    def forward(batch):
        raise KeyError("weights")

    with pytest.raises(KeyError, match="weights"), made(device, forward, capture=capture):
        pass


def test_a_batch_that_hangs_fails_in_time_and_others_go_on(device):
    gate = Gate()
    with made(device, gate, time_limit=0.05, in_flight=2) as batcher:
        gate.is_open.clear()
        stuck = batcher.submit(row(1))
        with pytest.raises(TimeoutError, match="time_limit"):
            stuck.result(20)
        assert stuck.done()
        gate.is_open.set()
        assert batcher(row(2)).tolist() == [2] * 4


def test_an_expired_request_is_not_begun(device):
    gate = Gate()
    with made(device, gate) as batcher:
        gate.is_open.clear()
        busy = [batcher.submit(row(0)) for _ in range(8)]
        late = batcher.submit(row(1), deadline=0)
        gate.is_open.set()
        with pytest.raises(RequestExpiredError, match="before it was begun"):
            late.result(20)
        assert all(each.result(20).tolist() == [0] * 4 for each in busy)
        assert batcher.statistics.expired == 1
        assert batcher.submit(row(2), deadline=60).result(20).tolist() == [2] * 4


def test_what_expires_at_once_is_never_begun(device):
    """Though it came after the dispatcher had looked at the clock. Mutant: what has expired is asked with that old time."""
    with made(device, max_queued=4096) as batcher:
        futures = [batcher.submit(row(0), deadline=0, timeout=None) for _ in range(3000)]
        for each in futures:
            with pytest.raises(RequestExpiredError):
                each.result(20)
        assert batcher.statistics.batches == 0


def test_a_forward_that_cannot_run_twice(device):
    """It is refused before the first request."""
    if not device.features.graphs or not device.features.memory_pools:
        pytest.skip("this driver has no memory in graphs")
    resource = ftcuda.GraphMemoryResource(device)
    kept = []

    def forward(batch):
        kept.append(resource.allocate(64, stream=batch.stream))
        copy(batch)

    with pytest.raises(RuntimeError, match="launch before"), made(device, forward, capture=True):
        pass


def test_priorities(device):
    """While one batch is on the device, more urgent requests come before those that came earlier."""
    order, gate = [], Gate()

    def forward(batch):
        gate(batch)
        host = np.empty((batch.size, 4), np.int32)
        batch["x"].copy_to(StridedMemoryView.from_array_interface(host), stream=batch.stream)
        batch.stream.sync()
        order.append(int(host[0, 0]))

    with made(device, forward, batch_sizes=(1,), priorities=2) as batcher:
        gate.is_open.clear()
        busy = [batcher.submit(row(index)) for index in range(2)]
        while batcher.queued:
            threading.Event().wait(0.001)
        order.clear()
        later = [batcher.submit(row(value), priority=int(value == 10)) for value in (10, 10, 10, 20, 20, 20)]
        gate.is_open.set()
        for each in (*busy, *later):
            each.result(20)
        assert [each for each in order if each >= 10][:2] == [20, 20]  # the two lanes note what they did as they come
        with pytest.raises(ValueError, match="priority must be from 0 to 1, not 2"):
            batcher.submit(row(0), priority=2)


def test_a_drain_loses_none(device, capture):
    with made(device, capture=capture) as batcher:
        futures = [batcher.submit(row(index)) for index in range(40)]
        batcher.drain(20)
        assert batcher.is_closed and all(each.done() for each in futures)
        assert [int(each.result()[0]) for each in futures] == list(range(40))
        with pytest.raises(ClosedError, match="the batcher is closed"):
            batcher.submit(row(0))
        batcher.drain()


def test_a_close_ends_what_waits(device):
    gate = Gate()
    with made(device, gate) as batcher:
        gate.is_open.clear()
        futures = [batcher.submit(row(index)) for index in range(20)]
        while batcher.statistics.batches < 2:
            threading.Event().wait(0.001)
        with pytest.raises(TimeoutError):
            batcher.drain(0)
        batcher.close()
        batcher.close()
        with pytest.raises(ClosedError, match="batcher"):
            futures[-1].result(20)
        gate.is_open.set()
        ends = [each.exception(20) for each in futures]
        assert ends[0] is None and {type(each) for each in ends} == {type(None), ClosedError}
        batcher.drain(20)
    assert "closed" in repr(batcher)


def test_who_waits_for_room_when_it_is_closed(device):
    """Leaves with an error, and then all is over. Mutant: the last who leaves does not say so."""
    gate, errors = Gate(), []

    def wait():
        with pytest.raises(ClosedError) as error:
            batcher.submit(row(0), timeout=None).result(20)  # which may find the room of those that have just failed
        errors.append(error.value)

    with made(device, gate, max_queued=4) as batcher:
        gate.is_open.clear()
        with pytest.raises(QueueFullError):
            while True:  # until no lane is free either
                batcher.submit(row(0), timeout=0.1)
        waiting = [threading.Thread(target=wait) for _ in range(3)]
        for each in waiting:
            each.start()
        threading.Event().wait(0.1)  # by then they wait, most probably
        batcher.close()
        for each in waiting:
            each.join(20)
        assert len(errors) == 3
        gate.is_open.set()
        batcher.drain(20)


def test_a_batcher_that_is_dropped_answers_first(device, capture):
    with made(device, capture=capture) as batcher:
        forgotten = Batcher(
            copy, inputs={"x": ROW}, outputs={"y": ROW}, batch_sizes=(1,), device=device, capture=capture
        )
        future = forgotten.submit(row(3))
        del forgotten
        gc.collect()
        assert future.result(20).tolist() == [3] * 4
        assert batcher(row(4)).tolist() == [4] * 4


def test_a_batcher_in_a_cycle_is_collected(device):
    """Though its own fields, and the future's, are not cleared."""

    class Named(Batcher):
        pass

    batcher = Named(copy, inputs={"x": ROW}, outputs={"y": ROW}, batch_sizes=(1,), device=device, capture=False)
    batcher.future = batcher.submit(row(3))
    assert batcher.future.result(20).tolist() == [3] * 4
    batcher.drain(20)
    gone = weakref.ref(batcher)
    del batcher
    gc.collect()
    assert gone() is None


def test_arrays_that_are_not_contiguous_or_of_an_equal_dtype(device):
    rows = np.arange(48, dtype=np.int32).reshape(6, 8)
    swapped = rows.astype(">i4")
    with made(device) as batcher:
        assert batcher.submit_many(rows[:, ::2]).result(20).tolist() == rows[:, ::2].tolist()
        assert batcher.submit_many(np.asfortranarray(rows[:, :4])).result(20).tolist() == rows[:, :4].tolist()
        assert batcher(rows[0, ::-2]).tolist() == [7, 5, 3, 1]
        assert batcher(rows[0, :4].view(np.dtype("i4", metadata={"of": "another"}))).tolist() == [0, 1, 2, 3]
        assert batcher.submit_many(rows[:0, :4]).result(20).shape == (0, 4)
        with pytest.raises(TypeError, match="x must be of dtype int32, not >i4"):
            batcher(swapped[0, :4])


def test_requests_go_to_the_device_with_the_fewest_rows(device):
    gate = Gate()
    with made([device, device], gate) as batcher:  # two that count apart
        assert batcher.devices == (device, device)
        gate.is_open.clear()
        futures = [batcher.submit(row(index)) for index in range(8)]
        gate.is_open.set()
        assert [int(each.result(20)[0]) for each in futures] == list(range(8))
        assert batcher.statistics.done == 8


def test_batched(device):
    @batched(inputs={"x": ROW}, outputs={"y": ROW}, batch_sizes=(1,), device=device, capture=False)
    def model(batch):
        copy(batch)

    with model:
        assert type(model) is Batcher and model(row(6)).tolist() == [6] * 4


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"inputs": {}}, ValueError, "inputs must name one array"),
        ({"inputs": [("x", ROW)]}, TypeError, "inputs must map names"),
        ({"inputs": {1: ROW}}, TypeError, "names in inputs must be str"),
        ({"inputs": {"x": "f4"}}, TypeError, r"inputs\['x'\] must be \(dtype, shape of a row\)"),
        ({"outputs": {"y": ("f4", (-1,))}}, ValueError, "negative length -1"),
        ({"outputs": {"y": ("f4", (1.5,))}}, TypeError, "must be of integers, not float"),
        ({"outputs": {"y": ("f4", (0, 1 << 70))}}, ValueError, "beyond any memory"),
        ({"outputs": {"": ROW}}, ValueError, "a name in outputs is empty"),
        ({"outputs": {"y": ("O", (1,))}}, TypeError, "dtype object"),
        ({"outputs": {"y": (("f4", (2,)), (1,))}}, TypeError, "whose elements a device does not know"),
        ({"inputs": {"x": ("f8", (1 << 40, 1 << 40))}}, ValueError, "more bytes than any host"),
        ({"max_queued": 1 << 24, "inputs": {"x": ("f8", (1 << 22,))}}, ValueError, "more bytes than any host"),
        ({"batch_sizes": ()}, ValueError, "ascending"),
        ({"batch_sizes": (4, 4)}, ValueError, "ascending"),
        ({"batch_sizes": (0, 4)}, ValueError, "ascending"),
        ({"batch_sizes": {1, 4}}, TypeError, "batch_sizes must be a sequence of sizes, not set"),
        ({"batch_sizes": (True,)}, TypeError, "a batch size must be an int, not bool"),
        ({"max_queued": 3}, ValueError, "max_queued must be from 4"),
        ({"in_flight": 0}, ValueError, "in_flight must be from 1 to 64, not 0"),
        ({"priorities": 17}, ValueError, "priorities must be from 1 to 16"),
        ({"max_delay": -1}, ValueError, "max_delay must be seconds from 0 up"),
        ({"max_delay": True}, TypeError, "max_delay must be seconds, not bool"),
        ({"max_delay": "1"}, TypeError, "max_delay must be seconds, not str"),
        ({"capture": "no"}, TypeError, "capture must be True or False, not str"),
        ({"progress": 1}, TypeError, "progress must be True or False, not int"),
        ({"time_limit": float("nan")}, ValueError, "time_limit must be seconds"),
        ({"device": ()}, ValueError, "device must name one"),
        ({"forward": 3}, TypeError, "forward must be callable, not int"),
    ],
)
def test_options_are_checked(device, options, error, text):
    options = {"inputs": {"x": ROW}, "outputs": {"y": ROW}, "batch_sizes": (1, 4), "device": device, **options}
    with pytest.raises(error, match=text):
        Batcher(options.pop("forward", copy), **options)


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        (np.zeros(4, np.float32), TypeError, "x must be of dtype int32, not float32"),
        (np.zeros(3, np.int32), ValueError, r"x must have the shape \(4,\), not \(3,\)"),
        (np.zeros((1, 4), np.int32), ValueError, r"x must have the shape \(4,\), not \(1, 4\)"),
        (None, TypeError, "x must be an array, not None"),
        ("four", ValueError, "could not convert|invalid literal"),
        ({"z": np.zeros(4, np.int32)}, TypeError, "an array for each of: x"),
    ],
)
def test_rows_are_checked(device, given, error, text):
    with made(device) as batcher:
        with pytest.raises(error, match=text):
            batcher.submit(given)
        with pytest.raises(ValueError, match=r"shape \(rows, 4\)"):
            batcher.submit_many(np.int32(3))
        with pytest.raises(ValueError, match="deadline must be seconds from 0 up, not -1"):
            batcher.submit(row(1), deadline=-1)
        with pytest.raises(TypeError, match="deadline must be seconds, not str"):
            batcher.submit(row(1), deadline="1")
        assert batcher.statistics.requests == 0 and batcher(row(1)).tolist() == [1] * 4


def test_a_device_by_its_number(capture):
    with made(0, capture=capture) as batcher:
        assert batcher.devices == (Device(0),) and repr(batcher) == "<Batcher of x to y>"
