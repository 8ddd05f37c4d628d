"""Objects of a thread that other threads let go of."""


def end_own_objects() -> None:
    """Ends the objects of the calling thread whose last reference went in another thread.

    Without the GIL the thread that made an object ends it, between two steps of Python code: this is one.
    """
