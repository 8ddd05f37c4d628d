"""The end of the interpreter while daemon threads are inside ftcuda."""

from ftcuda.testing.hazard import ProcessHazard


class ExitWithDaemons(ProcessHazard):
    """The process ends with status 0: it neither hangs nor crashes."""

    oracle = "the exit status, and that nothing is said on standard error"
    silent = True
    program = """
import random, threading
import ftcuda
device = ftcuda.Device(0)
stream = device.create_stream()
buffer = device.allocate(64, stream=stream)
started = threading.Barrier(THREADS + 1)
def work(index):
    started.wait()
    while True:
        stream.record(); buffer.fill(1, stream=stream); device.allocate(64, stream=stream).close()
        if index % 2: stream.sync()
for index in range(THREADS): threading.Thread(target=work, args=(index,), daemon=True).start()
started.wait()
for _ in range(random.Random(SEED).randrange(200)): stream.is_done
"""
