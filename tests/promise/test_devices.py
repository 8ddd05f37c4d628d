"""Two devices: objects that do not belong together are refused, and a kernel runs wherever it is launched."""

from tests.conftest import simulated_only

PROGRAM = """
import numpy as np
from ftcuda import *
from ftcuda.testing import simulation
first, second = Device.get_all_devices()
one, two = first.create_stream(), second.create_stream()
near, far = first.allocate(4, stream=one), second.allocate(4, stream=two)
code = Program('''extern "C" __global__ void store(int* p, int v) { *p = v; }
extern "C" __global__ void copy(int* p, const int* q) { *p = *q; }''', "c++").compile("ptx")
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
class Foreign:
    def __init__(self, buffer):
        self.__cuda_array_interface__ = dict(shape=(1,), typestr="<i4", data=(buffer.handle, False), version=3, stream=None)

# Mutant: bound-arguments-are-of-the-last-device.
for arguments in ((near, far), (far, near)):
    bound = code.get_kernel("copy").bind(ONE, *(StridedMemoryView(Foreign(each), -1) for each in arguments))
    for stream in (one, two): refused(lambda: bound.launch(stream))

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

# A kernel is equal to itself wherever it was got: by the function on the device where the code was loaded first.
second.set_current()
again = code.get_kernel("store")
assert again == store and hash(again) == hash(store) and again.handle == store.handle
first.set_current()
assert code.get_kernel("store") == again and Kernel.from_handle(store.handle, code) == again
first.sync(); second.sync()
assert simulation.violations() == [], simulation.violations()
print("two devices")
"""

SECOND_HALVES = """
import pytest
from ftcuda import *
from ftcuda.testing import faults, simulation
first, second = Device.get_all_devices()
one, two = first.create_stream(), second.create_stream()
code = Program('extern "C" __global__ void store(int* p, int v) { *p = v; }', "c++").compile("ptx")

# A module that could not be loaded on the first device is at home on the second.
before = simulation.live()["module"]
first.set_current()
with faults.failing("cuModuleLoadDataEx", 999), pytest.raises(CUDAError, match="UNKNOWN"):
    code.get_kernel("store")
second.set_current()
store = code.get_kernel("store")
assert simulation.live()["module"] == before + 1

# Where the second load fails, the first stays, and the next launch tries again.
near = first.allocate(4, stream=one)
with faults.failing("cuModuleLoadDataEx", 999), pytest.raises(CUDAError, match="UNKNOWN"):
    launch(one, LaunchConfig(grid=1, block=1), store, near, 7)
launch(one, LaunchConfig(grid=1, block=1), store, near, 7)
found = bytearray(4)
near.copy_to(found, stream=one)
assert found == b"\\7\\0\\0\\0" and simulation.live()["module"] == before + 2

# Who uses a buffer on the wrong device leaves no lease behind.
for _ in range(2):
    with pytest.raises(ValueError, match="different devices"): near.fill(0, stream=two)
near.close()
first.sync(); first.memory_resource.trim(); first.sync()
assert simulation.live()["device_allocation"] == 0
one.close(); two.close()
assert simulation.violations() == [], simulation.violations()
print("second halves")
"""


@simulated_only
def test_second_halves_on_two_devices(ptx_fits, run_python):
    """Mutant: modules-are-at-home-where-they-failed, refused-uses-elsewhere-keep-a-lease."""
    assert "second halves" in run_python(SECOND_HALVES, FTCUDA_SIM_DEVICES="2")


@simulated_only
def test_two_devices(ptx_fits, run_python):
    assert "two devices" in run_python(PROGRAM, FTCUDA_SIM_DEVICES="2")
