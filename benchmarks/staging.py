"""``python -m benchmarks.staging``: copies of pageable numpy arrays to the device, beside copies of pinned memory."""

import argparse
import json
import statistics
import sys
import threading
import time
from pathlib import Path

import numpy as np

from ftcuda import Device, LegacyPinnedMemoryResource, driver_info
from ftcuda.testing import together

MEBI = 1 << 20


def bandwidth(source: str, threads: int, size: int, copies: int) -> float:
    """Returns gigabytes a second, of all threads together, from the first copy's begin to the last one's end."""
    device = Device(0)

    def work(index):
        stream = device.create_stream()
        target = device.allocate(size, stream=stream)
        data = np.full(size, index, np.uint8) if source == "pageable" else LegacyPinnedMemoryResource().allocate(size)
        target.copy_from(data, stream=stream)
        stream.sync()
        barrier.wait()
        begin = time.perf_counter()
        for _ in range(copies):
            target.copy_from(data, stream=stream)
        stream.sync()
        end = time.perf_counter()
        barrier.wait()  # what frees memory would slow those that still copy
        target.close()
        stream.close()
        return begin, end

    barrier = threading.Barrier(threads)
    spans = together(threads, work, timeout=300)
    spent = max(end for _, end in spans) - min(begin for begin, _ in spans)
    return threads * copies * size / spent / 1e9


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.staging", description=__doc__)
    parser.add_argument("--threads", default="1,2,4,8,16")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--mebibytes", type=int, default=64)
    parser.add_argument("--copies", type=int, default=20)
    options = parser.parse_args()
    print(f"driver {driver_info().version}, {Device(0).name}, {options.mebibytes} MiB a copy")

    rows = []
    print("| threads | pinned GB/s | pageable GB/s | ratio | spread |\n| --- | --- | --- | --- | --- |")
    for threads in map(int, options.threads.split(",")):
        pairs = [
            [bandwidth(source, threads, options.mebibytes * MEBI, options.copies) for source in ("pinned", "pageable")]
            for _ in range(options.repeats)
        ]
        pinned, pageable = (statistics.median(column) for column in zip(*pairs, strict=True))
        ratios = [second / first for first, second in pairs]
        rows.append({"threads": threads, "pinned GB/s": pinned, "pageable GB/s": pageable, "ratios": ratios})
        spread = f"{min(ratios):.3f} to {max(ratios):.3f}"
        print(f"| {threads} | {pinned:.1f} | {pageable:.1f} | {pageable / pinned:.3f} | {spread} |", flush=True)
    if options.json:
        options.json.write_text(json.dumps({"device": Device(0).name, "staging": rows}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
