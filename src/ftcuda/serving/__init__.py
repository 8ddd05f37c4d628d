"""Dynamic batching: requests of many threads and tasks, put together to batches for one model."""

from collections.abc import Callable
from typing import Any

from ftcuda._objects.serving.batch import Batch
from ftcuda._objects.serving.batch_future import BatchFuture
from ftcuda._objects.serving.batcher import Batcher

__all__ = ["Batch", "BatchFuture", "Batcher", "batched"]


def batched(**options: Any) -> Callable[[Callable[[Batch], object]], Batcher]:
    """Makes a :class:`Batcher` of the function below it, with options of `Batcher`.

    Parameters
    ----------
    **options
        Keyword arguments of :class:`Batcher`.

    Returns
    -------
    callable
        What is called with ``forward``.

    Thread safety: atomic.
    """
    return lambda forward: Batcher(forward, **options)
