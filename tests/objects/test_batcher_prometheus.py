"""What prometheus_client makes of a batcher's statistics, and reads again."""

import numpy as np
import pytest

from ftcuda import QueueFullError
from ftcuda.serving import Batcher
from ftcuda.serving.prometheus import DEPARTURES, ENDINGS, collector

prometheus_client = pytest.importorskip("prometheus_client", reason="the extra `demo` has it")
parser = pytest.importorskip("prometheus_client.parser", reason="the extra `demo` has it")

ROW = ("int32", (4,))
TIMES = ("waiting", "total", "device")


def copy(batch):
    batch["y"].copy_from(batch["x"], stream=batch.stream)


@pytest.fixture
def batcher(device):
    """One that has done something: of its requests one was cancelled, or was too late for that, and one rejected."""
    with Batcher(
        copy, inputs={"x": ROW}, outputs={"y": ROW}, batch_sizes=(2, 4), max_queued=8, device=device, capture=False
    ) as made:
        assert made.submit_many(np.ones((3, 4), np.int32)).result(20).sum() == 12
        for value in range(5):
            assert made([value] * 4).tolist() == [value] * 4
        made.submit([9] * 4).cancel()
        with pytest.raises(QueueFullError):
            for _ in range(1000):
                made.submit_many(np.ones((8, 4), np.int32))
        made.drain(20)  # from now on its figures stay
        yield made


def scraped(*batchers):
    """Each sample of the text that a registry makes, which is parsed again: by name and labels."""
    registry = prometheus_client.CollectorRegistry()
    for name, each in batchers:
        registry.register(collector(each, name))
    text = prometheus_client.generate_latest(registry).decode()
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for metric in parser.text_string_to_metric_families(text)
        for sample in metric.samples
    }


def test_counts(batcher):
    found, figures = scraped(("digits", batcher)), batcher.statistics
    mine = ("batcher", "digits")
    for each in ENDINGS:
        assert found["ftcuda_batcher_requests_total", mine, ("end", each)] == getattr(figures, each)
    for why, name in DEPARTURES.items():
        assert found["ftcuda_batcher_batches_total", mine, ("why", why)] == getattr(figures, name)
    for name in ("rows", "batch_rows", "padding"):
        assert found[f"ftcuda_batcher_{name}_total", mine] == getattr(figures, name)
    assert found["ftcuda_batcher_queued_rows", mine] == 0
    assert figures.rejected >= 1 and figures.done >= 6 and figures.padding >= 5
    by_end = sum(found["ftcuda_batcher_requests_total", mine, ("end", each)] for each in ENDINGS if each != "rejected")
    assert by_end == figures.requests
    by_reason = sum(found["ftcuda_batcher_batches_total", mine, ("why", why)] for why in DEPARTURES)
    assert by_reason == figures.batches


@pytest.mark.parametrize("name", TIMES)
def test_histograms(batcher, name):
    """Buckets are cumulative: up to each limit all that were within it."""
    found, times = scraped(("digits", batcher)), getattr(batcher.statistics, name)
    metric, mine = f"ftcuda_batcher_{name}_seconds", ("batcher", "digits")
    limits = {dict(key[1:])["le"]: count for key, count in found.items() if key[0] == f"{metric}_bucket"}
    assert len(limits) == len(times.counts) + 1 and limits["+Inf"] == found[f"{metric}_count", mine] == times.count > 0
    for power, (limit, count) in enumerate(sorted((float(each), count) for each, count in limits.items())[:-1]):
        assert limit == pytest.approx(2 ** (power + 1) / 1e9)
        assert count == sum(times.counts[: power + 1])
    assert found[f"{metric}_sum", mine] == pytest.approx(times.seconds) and times.seconds > 0


def test_two_batchers_have_labels_of_their_own(batcher):
    found = scraped(("one", batcher), ("two", batcher))
    both = [found["ftcuda_batcher_rows_total", ("batcher", name)] for name in ("one", "two")]
    assert both == [batcher.statistics.rows] * 2


@pytest.mark.thread_unsafe(reason="registers with the registry of the process, which takes a name once")
def test_the_global_registry_takes_it_and_lets_go_of_it(batcher):
    one = collector(batcher)
    prometheus_client.REGISTRY.register(one)
    try:
        wanted = "ftcuda_batcher_rows_total", {"batcher": "batcher"}
        assert prometheus_client.REGISTRY.get_sample_value(*wanted) == batcher.statistics.rows
    finally:
        prometheus_client.REGISTRY.unregister(one)
    assert prometheus_client.REGISTRY.get_sample_value(*wanted) is None
