"""``python -m examples.serving.server``: granian in front of the batcher."""

import argparse
import asyncio
import json
import os
import signal
import sys
import sysconfig
import threading

from granian import Granian
from granian.constants import HTTPModes, Interfaces, Loops
from granian.log import LogLevels
from granian.server.embed import Server as Embedded

from examples.serving.application import Application
from examples.serving.digits import make_batcher
from ftcuda import Device

IS_FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
SIGNALS = (signal.SIGTERM, signal.SIGINT)
LATE = "granian did not end; nothing that was accepted is left"
QUIET = 0.2  # seconds without a request after which granian is stopped


class Ending:
    """What SIGTERM begins: requests are refused, those that were accepted answered; then granian is stopped.

    granian 2.7 is stopped when it has nothing to do, because it waits for each connection as long as it lasts. If it
    does not end then, the process does: nothing that was accepted is left.
    """

    def __init__(self, application: Application, patience: float, stop) -> None:
        self._application, self._patience, self._stop = application, patience, stop
        self._thread = threading.Thread(target=self._run, name="ending", daemon=True)
        self._has_stopped = threading.Event()

    def begin(self, *_) -> None:
        """Called by a signal, in the main thread; a second one changes nothing."""
        if self._thread.ident is None:
            self._thread.start()

    def _run(self) -> None:
        self._application.end(QUIET, self._patience)
        self._stop()
        if not self._has_stopped.wait(self._patience):
            print(LATE, file=sys.stderr)
            self.finish()
            os._exit(0)

    def finish(self) -> None:
        """Called when granian has ended: says what became of all requests."""
        self._has_stopped.set()
        print(json.dumps(self._application.close()), flush=True)


def serve_in_threads(application: Application, patience: float, workers: int, **options) -> None:
    """Without the GIL: workers are threads, each with a loop."""
    server = Granian("digits", workers=workers, loop=Loops.asyncio, **options)
    ending = Ending(application, patience, server.signal_handler_interrupt)

    @server.on_startup
    def take_signals() -> None:  # after granian took them
        for number in SIGNALS:
            signal.signal(number, ending.begin)

    server.serve(target_loader=lambda: application, wrap_loader=False)
    ending.finish()


def serve_in_this_thread(application: Application, patience: float, **options) -> None:
    """With the GIL: granian's workers would be processes, each with a batcher; so there is one loop, in this thread."""

    async def main() -> Ending:
        loop, server = asyncio.get_running_loop(), Embedded(application, **options)
        ending = Ending(application, patience, lambda: loop.call_soon_threadsafe(server.stop))
        for number in SIGNALS:
            loop.add_signal_handler(number, ending.begin)
        await server.serve()
        return ending

    asyncio.run(main()).finish()


def default_workers() -> int:
    """Loops that run at once: CPython 3.13's asyncio has not been made for several."""
    return 2 if IS_FREE_THREADED and sys.version_info >= (3, 14) else 1


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m examples.serving.server", description=__doc__)
    parser.add_argument("--address", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--workers", type=int, default=default_workers(), help="threads with a loop each")
    parser.add_argument("--max-queued", type=int, default=4096, help="images that may wait")
    parser.add_argument("--deadline", type=float, default=30.0, help="seconds that an image may wait")
    parser.add_argument("--patience", type=float, default=5.0, help="seconds to wait for clients after SIGTERM, twice")
    arguments = parser.parse_args()
    if arguments.workers > 1 and not IS_FREE_THREADED:
        parser.error("with the GIL there is one worker")
    device = Device(0)
    device.set_current()
    application = Application(make_batcher(device, max_queued=arguments.max_queued), deadline=arguments.deadline)
    options = {
        "address": arguments.address, "port": arguments.port, "interface": Interfaces.RSGI, "http": HTTPModes.http1,
        "websockets": False, "log_level": LogLevels.error,
    }  # fmt: skip
    if IS_FREE_THREADED:
        serve_in_threads(application, arguments.patience, arguments.workers, **options)
    else:
        serve_in_this_thread(application, arguments.patience, **options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
