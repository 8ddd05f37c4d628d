import threading

import pytest

from ftcuda.testing import Sequencer, together


def test_results_by_index():
    assert together(4, lambda index, base: base + index, 10) == [10, 11, 12, 13]


def test_every_exception_is_collected():
    def work(index):
        raise (SystemExit if index else ValueError)(index)

    with pytest.raises(BaseExceptionGroup) as caught:
        together(3, work)
    assert len(caught.value.exceptions) == 3 and caught.group_contains(SystemExit)


def test_a_stuck_thread_is_reported(capfd):
    never = threading.Event()
    try:
        with pytest.raises(TimeoutError, match="together-1 did not end"):
            together(2, lambda index: index and never.wait(), timeout=0.2)
    finally:
        never.set()


def test_sequencer():
    sequencer = Sequencer()
    order = []

    def work(index):
        for number in range(index + 1, 10, 3):
            with sequencer.step(number):
                order.append(number)

    together(3, work)
    assert order == sorted(order) and len(order) == 9
    with pytest.raises(ValueError, match="taken already"), sequencer.step(3):
        pass
    with pytest.raises(TimeoutError, match="nobody took"), Sequencer(timeout=0.01).step(2):
        pass
