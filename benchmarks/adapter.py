"""``python -m benchmarks.adapter``: a driver call by a native extension, through the adapter and without it."""

import ctypes
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import ftcuda

CALLS = 2_000_000
REPEATS = 9


def main() -> int:
    table = ctypes.pythonapi.PyCapsule_GetPointer
    table.argtypes, table.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p
    driver = table(ftcuda.adapter.driver_v1, b"ftcuda.adapter.driver_v1")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "adapter.so"
        source = Path(__file__).with_name("adapter.cpp")
        command = ["c++", "-std=c++17", "-O2", "-shared", "-fPIC", f"-I{ftcuda.get_include()}", source, "-o", library]
        subprocess.run(command, check=True)
        measure = ctypes.CDLL(str(library)).measure
    measure.argtypes, measure.restype = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_long, *[ctypes.c_void_p] * 3), None
    path, rows = ftcuda.driver_info().path.encode(), []
    for _ in range(REPEATS):
        times = [ctypes.c_double() for _ in range(3)]
        measure(driver, path, CALLS, *map(ctypes.byref, times))
        rows.append([time.value for time in times])
        if rows[-1][0] < 0:
            print("the driver's cuDriverGetVersion was not found", file=sys.stderr)
            return 1
    direct, adapter, find = (statistics.median(column) for column in zip(*rows, strict=True))
    print(f"driver {ftcuda.driver_info().version}: direct {direct:.2f} ns, through the adapter {adapter:.2f} ns")
    print(f"finding a function: {find:.0f} ns")
    return 0


if __name__ == "__main__":
    sys.exit(main())
