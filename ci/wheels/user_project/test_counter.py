"""A race, as a user's project may have one."""

import pytest


class Counter:
    def __init__(self):
        self.count = 0

    def add(self):
        self.count += 1


@pytest.mark.race(threads=2, rounds=100)
def test_counter(race):
    counter = Counter()
    race(lambda index: counter.add())
    assert counter.count == 2
