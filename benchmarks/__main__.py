"""``python -m benchmarks BASELINE``: launches with four arguments, in turns with C++ (built from launch.cpp)."""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import ftcuda
from ftcuda import Device, LaunchConfig, Program, driver_info, launch
from ftcuda.testing import together

SOURCE = 'extern "C" __global__ void nothing(int n, float a, const float* x, float* y) {}'
CONFIG = LaunchConfig(grid=1, block=1)


def ours(kernel, buffer, threads: int, launches: int) -> float:
    """Returns nanoseconds per launch and thread."""
    device = Device(0)

    def work(index):
        stream = device.create_stream()

        def run(count):
            for number in range(count):
                launch(stream, CONFIG, kernel, 0, 2.0, buffer, buffer)
                if number % 500 == 499:
                    stream.sync()

        run(1000)
        begin = time.perf_counter_ns()
        run(launches)
        spent = time.perf_counter_ns() - begin
        stream.close()
        return spent / launches

    return statistics.mean(together(threads, work, timeout=300))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("baseline", type=Path)
    parser.add_argument("--threads", default="1,2,4,8,16")
    parser.add_argument("--launches", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    info, device = driver_info(), Device(0)
    gil = "enabled" if sys._is_gil_enabled() else "disabled"
    interpreter = f"CPython {sys.version.split()[0]}, GIL {gil}"
    print(f"ftcuda {ftcuda.__version__}, {interpreter}, driver {info.version}, {device.name}")
    code = Program(SOURCE, "c++").compile("ptx" if info.simulated else "cubin")
    kernel = code.get_kernel("nothing")
    buffer = device.allocate(4096, stream=device.create_stream())
    device.sync()
    rows = []
    print("| threads | C++ ns | ftcuda ns | ratio | spread |\n| --- | --- | --- | --- | --- |")
    with tempfile.NamedTemporaryFile() as image:
        image.write(code.code + b"\0")
        image.flush()
        for threads in map(int, options.threads.split(",")):
            command = [str(options.baseline), info.path, image.name, str(threads), str(options.launches)]
            pairs = []
            for _ in range(options.repeats):
                theirs = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
                pairs.append((theirs, ours(kernel, buffer, threads, options.launches)))
            theirs, mine = (statistics.median(column) for column in zip(*pairs, strict=True))
            ratios = [own / other for other, own in pairs]
            rows.append({"threads": threads, "cpp_ns": theirs, "ftcuda_ns": mine, "ratios": ratios})
            spread = f"{min(ratios):.3f} to {max(ratios):.3f}"
            print(f"| {threads} | {theirs:.0f} | {mine:.0f} | {mine / theirs:.3f} | {spread} |", flush=True)
    if options.json:
        options.json.write_text(
            json.dumps({"driver": info.version, "device": device.name, "gil": gil, "launch": rows}, indent=1)
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
