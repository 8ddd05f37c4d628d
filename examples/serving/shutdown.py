"""SIGTERM under load: whether a server answers all that it accepted.

A request is accepted when the application has its whole body and did not say that the server ends: the server counts
these, and those to which it said that. An answer that a client has is one to an accepted request. So none was lost if
clients have as many answers as the server accepted requests. Every other request was turned away in words, found no
connection, or had its connection closed before any byte of an answer.
"""

from concurrent.futures import ThreadPoolExecutor

from examples.serving.load import Load, Questions, Tally
from examples.serving.process import ServerProcess


def terminate_under_load(
    server: ServerProcess, questions: Questions, at: int, clients: int
) -> tuple[Tally, dict[str, int]]:
    """Ends a server while so many threads and as many tasks ask it.

    Parameters
    ----------
    server : ServerProcess
        Which one.
    questions : Questions
        What is asked.
    at : int
        The number of the request before which SIGTERM is sent; clients go on until they are refused.
    clients : int
        How many of each kind there are.

    Returns
    -------
    Tally
        What the clients saw.
    dict
        What the server said, of its whole life.
    """
    load = Load(server.port, questions, at=at, call=server.terminate)
    with ThreadPoolExecutor(2) as pool:
        both = pool.submit(load.run_threads, clients), pool.submit(load.run_tasks, clients)
        tally = Tally.of([each.result() for each in both])
    return tally, server.end()


def faults_of(tally: Tally, said: dict[str, int], before: int = 0) -> list[str]:
    """What went wrong; `before` is how many answers other clients had."""
    answers = before + len(tally.seconds)
    faults = [
        f"the server {name} {said[name]} requests, clients have answers to {answers}"
        for name in ("accepted", "answered", "computed")
        if said[name] != answers
    ]
    if said["refused"] != len(tally.turned_away):
        faults.append(f"the server refused {said['refused']} requests, clients saw {len(tally.turned_away)} of these")
    if tally.broken:
        faults.append(f"{len(tally.broken)} answers ended amid their bytes")
    return tally.faults + faults
