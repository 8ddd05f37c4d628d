"""The soak of a batcher runs, and misses nothing that is lost."""

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

from stress import batching

SOAK = """
import sys
from stress.batching import main

sys.argv[1:] = "--seconds 1 --threads 3 --window 32 --queued 64".split()
sys.exit(main())
"""


def test_a_short_soak_loses_nothing(run_python, ptx_fits):
    said = run_python(SOAK)
    assert "3 refused after the drain began" in said and " 0 answered" not in said and "wrong" not in said


def test_what_is_lost_is_missed():
    counted = {"requests": 9, "rejected": 1, "done": 7, "cancelled": 1, "expired": 1, "failed": 0, "queued": 0}
    senders = [SimpleNamespace(sent=10, ends=Counter(answered=7, cancelled=1, expired=1, rejected=1))]
    assert batching.differences(senders, SimpleNamespace(**counted)) == []
    assert batching.differences(senders, SimpleNamespace(**counted | {"done": 8, "expired": 0})) == [
        "callers saw 7 answered, and the batcher counted 8", "callers saw 1 expired, and the batcher counted 0",
    ]  # fmt: skip
    assert len(batching.differences(senders, SimpleNamespace(**counted | {"failed": 1}))) == 1
    senders[0].sent = 11
    assert batching.differences(senders, SimpleNamespace(**counted))[0] == "11 requests were sent, and 10 ended"


def test_an_answer_of_another_request_is_found():
    sender = batching.Sender(SimpleNamespace(), 1)
    rows = np.arange(4, dtype=np.int32)
    mine, other = (SimpleNamespace(result=lambda limit, rows=rows + n: rows) for n in (0, 1))
    sender._end([(mine, rows, None, False, False)])
    with pytest.raises(batching.WrongEnd, match="not the request's own rows"):
        sender._end([(other, rows, None, False, False)])
    assert sender.ends == {"answered": 2}
