"""Where all threads are: for the report of a hang."""

import faulthandler
import linecache
import re
import sys
import tempfile
import threading

LAST_RESORT = 5.0  # seconds
TIMER = threading.Lock()  # faulthandler has one: set by two threads at once, it may be left to go off
HEAD = re.compile(r"^(?:Current thread|Thread) 0x([0-9a-f]+)")
FRAME = re.compile(r'^  File "(.*)", line (\d+) in ')


def all_stacks() -> str:
    """Returns the stack of every thread of the interpreter, by name, innermost frame first, with the source lines.

    They are read while no thread runs Python. A thread that does not let go of the interpreter, because it hangs inside
    a library without having detached, makes that impossible, and everything else that the process might still do: it
    ends after 5 s with status 1, and with the same stacks, without names and lines, on standard error. A timer that
    :func:`faulthandler.dump_traceback_later` has set before is stopped: there is only one.

    Thread safety: shared.
    """
    with TIMER, tempfile.TemporaryFile() as file:
        faulthandler.dump_traceback_later(LAST_RESORT, exit=True, file=sys.__stderr__)
        try:
            faulthandler.dump_traceback(file=file, all_threads=True)
        finally:
            faulthandler.cancel_dump_traceback_later()
        file.seek(0)
        return readable(file.read().decode(errors="replace"))


def readable(text: str) -> str:
    """Returns what faulthandler wrote, with the threads' names and the source lines."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    lines = []
    for line in text.splitlines():
        if head := HEAD.match(line):
            line = f"{names.get(int(head[1], 16), line.partition(' (')[0])}:"
        lines.append(line)
        if frame := FRAME.match(line):
            source = linecache.getline(frame[1], int(frame[2])).strip()
            lines += [f"    {source}"] * bool(source)
    return "\n".join(lines)
