"""``python -m benchmarks.staging``: copies of pageable numpy arrays to the device, beside copies of pinned memory."""

import json
import sys
import threading
import time

import numpy as np

from benchmarks import turns
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
    parser = turns.parser("benchmarks.staging", __doc__)
    parser.add_argument("--mebibytes", type=int, default=64)
    parser.add_argument("--copies", type=int, default=20)
    options = parser.parse_args()
    print(f"driver {driver_info().version}, {Device(0).name}, {options.mebibytes} MiB a copy")

    def of(source):
        return lambda threads: bandwidth(source, threads, options.mebibytes * MEBI, options.copies)

    rows = turns.compare(options, ("pinned GB/s", "pageable GB/s"), 1, of("pinned"), of("pageable"))
    if options.json:
        options.json.write_text(json.dumps({"device": Device(0).name, "staging": rows}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
