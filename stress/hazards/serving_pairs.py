"""Pairs of calls on batchers and what comes of them: as pairs.py, of objects with threads of the library's own."""

from stress.hazards import pairs


class ServingPairs(pairs.Pairs):
    """Each racing call completes; beside a close it may say that the batcher is closed. Nothing else happens."""

    oracle = "what each call raises, against the promise table; what was closed says so"
    unscheduled = "a thread of the batcher's ends requests, and no schedule knows it"
    is_scheduled = False
