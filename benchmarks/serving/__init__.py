"""Requests of many threads for one model: ftcuda's batcher beside others (``python -m benchmarks.serving``)."""
