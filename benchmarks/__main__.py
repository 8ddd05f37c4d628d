"""``python -m benchmarks BASELINE``: launches with four arguments, in turns with C++ (built from launch.cpp)."""

import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import ftcuda
from benchmarks import turns
from ftcuda import Device, LaunchConfig, Program, driver_info, launch
from ftcuda.testing import together

SOURCE = 'extern "C" __global__ void nothing(int n, float a, const float* x, float* y) {}'
CONFIG = LaunchConfig(grid=1, block=1)


def ours(kernel, buffer, threads: int, launches: int) -> float:
    """Returns nanoseconds per launch and thread."""
    device, ready = Device(0), threading.Barrier(threads)

    def work(index):
        stream = device.create_stream()

        def run(count):
            for _ in range(count // 500):
                for _ in range(500):
                    launch(stream, CONFIG, kernel, 0, 2.0, buffer, buffer)
                stream.sync()

        run(1000)
        ready.wait()
        begin = time.perf_counter_ns()
        run(launches)
        spent = time.perf_counter_ns() - begin
        stream.close()
        return spent / launches

    return statistics.mean(together(threads, work, timeout=300))


def main() -> int:
    parser = turns.parser("benchmarks", __doc__)
    parser.add_argument("baseline", type=Path)
    parser.add_argument("--launches", type=int, default=20_000)
    options = parser.parse_args()
    info, device = driver_info(), Device(0)
    gil = "enabled" if sys._is_gil_enabled() else "disabled"
    interpreter = f"CPython {sys.version.split()[0]}, GIL {gil}"
    print(f"ftcuda {ftcuda.__version__}, {interpreter}, driver {info.version}, {device.name}")
    code = Program(SOURCE, "c++").compile("ptx" if info.simulated else "cubin")
    kernel = code.get_kernel("nothing")
    buffer = device.allocate(4096, stream=device.create_stream())
    device.sync()
    with tempfile.NamedTemporaryFile() as image:
        image.write(code.code + b"\0")
        image.flush()

        def theirs(threads):
            command = [options.baseline.resolve(), info.path, image.name, str(threads), str(options.launches)]
            return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

        rows = turns.compare(
            options, ("C++ ns", "ftcuda ns"), 0, theirs, lambda threads: ours(kernel, buffer, threads, options.launches)
        )
    if options.json:
        options.json.write_text(
            json.dumps({"driver": info.version, "device": device.name, "gil": gil, "launch": rows}, indent=1)
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
