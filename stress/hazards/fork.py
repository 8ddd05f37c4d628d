"""A fork while other threads use the driver."""

from ftcuda.testing.hazard import ProcessHazard


class ForkAfterUse(ProcessHazard):
    """The child gets an error from every call and can exit; the parent goes on."""

    oracle = "the child's answers and exit status; the parent's exit status"
    program = """
import os, signal, threading, warnings
import ftcuda
warnings.simplefilter("ignore")  # Python's own about forking
device = ftcuda.Device(0)
stream = device.create_stream()
stop = threading.Event()
def work():
    while not stop.is_set():
        stream.record().close()
        device.allocate(64, stream=stream).close()
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
try:
    for _ in range(3):
        child = os.fork()
        if child == 0:
            signal.alarm(20)  # a child that hangs ends, and so fails
            for use in (stream.sync, stream.record, device.create_stream):
                try: use()
                except ftcuda.ForkedProcessError: pass
                else: os._exit(1)
            stream.close()
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
finally:
    stop.set()
for thread in threads: thread.join()
stream.sync()
"""
