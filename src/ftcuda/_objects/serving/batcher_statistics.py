"""What a batcher has done."""

from typing import NamedTuple


class Times(NamedTuple):
    """How long something took. ``counts[n]`` lasted 2^n nanoseconds at least, and less than twice that."""

    counts: tuple[int, ...]
    seconds: float

    @property
    def count(self) -> int:
        """How many there were."""
        return sum(self.counts)

    def percentile(self, percent: float) -> float:
        """Seconds within which so many percent were over, to a factor of two; 0 where there were none."""
        left = self.count * percent / 100
        for power, count in enumerate(self.counts):
            left -= count
            if count and left <= 0:
                return float(2 ** (power + 1)) / 1e9
        return 0.0


class BatcherStatistics(NamedTuple):
    """What a batcher has done since it was made, of all its devices.

    Requests: how many there were, with how many rows; of these `done`, `failed`, `cancelled` and `expired`, and beside
    them those `rejected`, for which there was no room. Batches: how many, with how many rows, and rows of `padding`; by
    why they left. `queued`: rows that wait now. Times: of requests until they left, and until they were done; of
    batches.
    """

    requests: int
    rows: int
    rejected: int
    done: int
    failed: int
    cancelled: int
    expired: int
    batches: int
    batch_rows: int
    padding: int
    left_full: int
    left_by_delay: int
    left_by_idleness: int
    left_by_drain: int
    queued: int
    waiting: Times
    total: Times
    device: Times
