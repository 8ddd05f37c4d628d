"""Figures of batchers for `prometheus_client`, read when they are asked for."""

from collections.abc import Iterator
from typing import Any

from ftcuda._objects.serving.batcher import Batcher
from ftcuda._objects.serving.batcher_statistics import Times

__all__ = ["BatcherCollector", "collector"]

ENDINGS = ("done", "failed", "cancelled", "expired", "rejected")
DEPARTURES = {"full": "left_full", "delay": "left_by_delay", "idleness": "left_by_idleness", "drain": "left_by_drain"}


class BatcherCollector:
    """Gives the metrics of a batcher; ``prometheus_client.REGISTRY.register(...)`` takes it."""

    def __init__(self, batcher: Batcher, name: str) -> None:
        self._batcher, self._name = batcher, name

    def collect(self) -> Iterator[Any]:
        """Called by prometheus_client at each scrape. Thread safety: atomic."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        figures = self._batcher.statistics
        labels = ["batcher"]
        requests = CounterMetricFamily("ftcuda_batcher_requests", "Requests by their end", labels=[*labels, "end"])
        for each in ENDINGS:
            requests.add_metric([self._name, each], getattr(figures, each))
        yield requests
        batches = CounterMetricFamily("ftcuda_batcher_batches", "Batches by why they left", labels=[*labels, "why"])
        for why, field in DEPARTURES.items():
            batches.add_metric([self._name, why], getattr(figures, field))
        yield batches
        texts = {"rows": "Rows of requests", "batch_rows": "Rows of batches", "padding": "Rows of nobody in batches"}
        for name, text in texts.items():
            counter = CounterMetricFamily(f"ftcuda_batcher_{name}", text, labels=labels)
            counter.add_metric([self._name], getattr(figures, name))
            yield counter
        queued = GaugeMetricFamily("ftcuda_batcher_queued_rows", "Rows that wait", labels=labels)
        queued.add_metric([self._name], figures.queued)
        yield queued
        for name, text in (
            ("waiting", "Seconds of requests until they left"),
            ("total", "Seconds of requests until they were done"),
            ("device", "Seconds of batches"),
        ):
            histogram = HistogramMetricFamily(f"ftcuda_batcher_{name}_seconds", text, labels=labels)
            times = getattr(figures, name)
            histogram.add_metric([self._name], buckets_of(times), times.seconds)
            yield histogram


def buckets_of(times: Times) -> list[tuple[str, float]]:
    """Upper limits in seconds, and how many were within them."""
    made, total = [], 0.0
    for power, count in enumerate(times.counts):
        total += count
        made.append((str(2.0 ** (power + 1) / 1e9), total))
    return [*made, ("+Inf", total)]


def collector(batcher: Batcher, name: str = "batcher") -> BatcherCollector:
    """What ``prometheus_client.REGISTRY.register()`` takes.

    Parameters
    ----------
    batcher : Batcher
        Whose statistics are read at each scrape.
    name : str
        The label ``batcher`` of all its metrics.

    Returns
    -------
    BatcherCollector

    Thread safety: atomic.
    """
    return BatcherCollector(batcher, name)
