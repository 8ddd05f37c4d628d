"""Where Python runs the handlers of signals."""

import threading

MAIN_THREAD: int = threading.main_thread().ident or 0
