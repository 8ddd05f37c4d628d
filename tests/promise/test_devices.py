"""Two devices: objects that do not belong together are refused, and a kernel runs wherever it is launched."""

from tests.conftest import simulated_only
from tests.promise.test_process import ptx_fits  # noqa: F401 - a fixture

PROGRAM = """
import numpy as np
from ftcuda import *
from ftcuda.testing import simulation
first, second = Device.get_all_devices()
one, two = first.create_stream(), second.create_stream()
near, far = first.allocate(4, stream=one), second.allocate(4, stream=two)
code = Program('extern "C" __global__ void store(int* p, int v) { *p = v; }', "c++").compile("ptx")
store = code.get_kernel("store")
ONE = LaunchConfig(grid=1, block=1)

def refused(use):
    try: use()
    except ValueError as error: assert "different devices" in str(error) or "belongs to" in str(error), error
    else: raise SystemExit("not refused")

refused(lambda: launch(one, ONE, store, far, 1))
refused(lambda: first.memory_resource.allocate(4, stream=two))
refused(lambda: near.fill(0, stream=two))
refused(lambda: one.record(second.create_event()))
refused(lambda: near.close(two))
refused(lambda: first.create_stream(two))
near.fill(0, stream=one)  # none of it was half done

host = LegacyPinnedMemoryResource().allocate(8)
view = np.frombuffer(host, np.int32)
launch(one, ONE, store, host, 1)
launch(two, ONE, store, host.handle + 4, 2)
two.wait(one)
one.wait(two.record())
one.sync(); two.sync()
assert list(view) == [1, 2], view
del view
for thing in (near, far, host, one, two): thing.close()
first.sync(); second.sync()
assert simulation.violations() == [], simulation.violations()
print("two devices")
"""


@simulated_only
def test_two_devices(run_python):
    assert "two devices" in run_python(PROGRAM, FTCUDA_SIM_DEVICES="2")
