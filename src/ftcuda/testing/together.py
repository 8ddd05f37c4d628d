"""Running threads together."""

import faulthandler
import sys
import threading


def together(threads: int, function, *arguments, timeout: float = 60.0) -> list:
    """Runs `function(index, *arguments)` in `threads` threads that start at one barrier.

    Parameters
    ----------
    threads : int
    function : callable
        Gets the thread's index, from 0.
    *arguments
        Passed on.
    timeout : float
        Seconds after which the stacks of all threads are printed and the call fails.

    Returns
    -------
    list
        What each thread returned, by index.

    Raises
    ------
    BaseExceptionGroup
        What the threads raised, all of it; `SystemExit` and the like too.
    TimeoutError
        Not all threads ended.
    """
    start = threading.Barrier(threads)
    results = [None] * threads
    failures = []

    def run(index: int) -> None:
        try:
            start.wait(timeout)
            results[index] = function(index, *arguments)
        except BaseException as failure:
            failures.append(failure)

    workers = [
        threading.Thread(target=run, args=(index,), name=f"together-{index}", daemon=True) for index in range(threads)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout)
    stuck = [worker.name for worker in workers if worker.is_alive()]
    if stuck:
        faulthandler.dump_traceback(file=sys.__stderr__, all_threads=True)
        raise TimeoutError(f"{', '.join(stuck)} did not end within {timeout} s; the stacks are on standard error")
    if failures:
        raise BaseExceptionGroup(f"{len(failures)} of {threads} threads failed", failures)
    return results
