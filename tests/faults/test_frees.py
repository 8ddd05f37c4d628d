"""Memory that cannot be given back in the usual way is given back in another, and is not lost."""

import pytest

from tests.conftest import simulated_only


@simulated_only
@pytest.mark.parametrize("fails", ["", "cuStreamCreateWithPriority"])
def test_a_free_of_its_own_stream_cannot_be_made(run_python, fails):
    """Mutant: without the context's own stream, memory of a pool is not freed."""
    run_python(f"""
import warnings
import ftcuda
from contextlib import nullcontext
from ftcuda.testing import faults, simulation
warnings.simplefilter("ignore")
device = ftcuda.Device(0)
device.sync()
before = simulation.live()["device_allocation"]
buffer = device.allocate(64)
with faults.failing("cuCtxGetCurrent", 999):
    buffer.close()
assert simulation.live()["device_allocation"] > before
with faults.failing({fails!r}, 999) if {bool(fails)} else nullcontext():
    device.sync()
device.sync()  # a free in a stream is work too
assert simulation.live()["device_allocation"] == before
assert simulation.violations() == []
""")
