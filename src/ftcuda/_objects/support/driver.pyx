"""The loading of the driver at first use."""

import atexit
import os
import sys
import time
from collections import namedtuple

from libcpp.string cimport string

from core.completion.host_call cimport end as end_host_calls
from core.completion.when_done cimport end as end_when_done
from core.device.process cimport begin_exit
from core.sync.fork cimport watch_forks
from core.driver.loader cimport candidates, load, loaded, loaded_driver
from ftcuda._objects.support.deferred_release cimport give_back

from ftcuda._objects.support.installed import installed
from ftcuda._objects.support.texts import zero_ended
from ftcuda.errors import DriverNotFoundError

DriverInfo = namedtuple("DriverInfo", ("path", "version", "simulated"), module=__name__)

SIMULATED_DRIVER = "ftcuda_simdriver.dll" if sys.platform == "win32" else "libftcuda_simdriver.so"


cdef int require_driver() except -1:
    """Loads the driver that FTCUDA_DRIVER names, unless one is loaded."""
    cdef string problem, choice, simulated
    cdef bint found
    if loaded():
        return 0
    choice = zero_ended(os.fsencode(os.environ.get("FTCUDA_DRIVER", "cuda")), "FTCUDA_DRIVER")
    simulated = zero_ended(os.fsencode(installed(SIMULATED_DRIVER)), "the path of the simulated driver")
    with nogil:
        found = load(candidates(choice, simulated), problem)
    if not found:
        raise DriverNotFoundError(
            f"no usable CUDA driver (FTCUDA_DRIVER={choice.decode()}): {problem.decode('utf-8', 'replace')}. "
            "Install NVIDIA's driver, or set FTCUDA_DRIVER=sim to run on the simulated driver"
        )
    watch_forks()
    atexit.register(_begin_exit)
    return 0


def _begin_exit():
    """Runs at exit, in the thread that ends the process."""
    give_back(1.0)  # what was dropped before
    with nogil:
        end_when_done()
        end_host_calls()  # for whose thread the driver's would wait, and the interpreter lets it run no more
    # CPython 3.13 frees the states of daemon threads while one of them may just be detaching from the interpreter,
    # which then crashes (gh-124878). So they call the driver, for which they detach, a hundred times a second from now
    # on, and soon none of them is on its way there.
    slowly = sys.version_info < (3, 14)
    is_first = begin_exit(slowly)  # threads that load the driver at once all register this
    if is_first and slowly and len(sys._current_frames()) > 1:
        time.sleep(0.02)  # two of their waits


def driver_info():
    """Returns the loaded driver, loading it if this is its first use.

    Thread safety: atomic.

    Returns
    -------
    DriverInfo
        ``path`` of the library, ``version`` as ``"major.minor"``, ``simulated``.
    """
    require_driver()
    version = loaded_driver().version
    return DriverInfo(
        loaded_driver().path.decode("utf-8", "replace"), f"{version // 1000}.{version % 1000 // 10}",
        loaded_driver().simulated,
    )
