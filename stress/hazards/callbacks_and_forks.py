"""Forks while ftcuda calls functions, some of which raise."""

from ftcuda.testing.hazard import ProcessHazard


class CallbacksAndForks(ProcessHazard):
    """The parent's functions are called, whatever forks meanwhile; a child may use nothing, and ends."""

    oracle = "how often functions were called and raised; the child's answers; both exit statuses"
    program = """
import gc, os, random, signal, sys, threading, warnings
import ftcuda
warnings.simplefilter("ignore")  # Python's own about forking
device = ftcuda.Device(0)
stop = threading.Event()
called, raised, failed = threading.Semaphore(0), threading.Semaphore(0), []
class Meant(Exception): pass
def unraisable(said):
    if isinstance(said.exc_value, Meant): raised.release()
    else: failed.append(said.exc_value)
sys.unraisablehook = unraisable
def work(index):
    chance = random.Random(SEED + index)
    stream, inner = device.create_stream(), device.create_stream()
    builds = index == 0 and device.features.graphs
    calls = raises = 0
    def function(raising, is_host_function, dropped):
        called.release()
        for act in (lambda: device.allocate(64, stream=inner).close(), inner.record):
            try: act()
            except ftcuda.CUDAError as error: assert is_host_function and error.code == 800
            else: assert not is_host_function
        dropped.append(dropped)
        del dropped
        gc.collect(0)
        if raising: raise Meant
    while not stop.is_set():
        raising = chance.randrange(4) == 0
        waits = builds or chance.randrange(2) == 0
        act = lambda raising=raising, waits=waits, dropped=[stream.record()]: function(raising, waits, dropped)
        device.allocate(64, stream=stream).close()
        if builds:
            builder = stream.create_graph_builder().begin_building()
            builder.callback(act)
            graph = builder.end_building().complete()
            graph.launch(stream)
            graph.close()
            builder.close()
        elif waits: ftcuda.host_launch(stream, act)
        else: stream.when_done(act)
        calls += 1
        raises += raising
        if chance.randrange(8) == 0: stream.sync()
    stream.sync()
    counts.append((calls, raises))
counts = []
threads = [threading.Thread(target=work, args=(index,)) for index in range(3)]
for thread in threads: thread.start()
shared = device.create_stream()
try:
    for _ in range(3):
        child = os.fork()
        if child == 0:
            signal.alarm(20)  # a child that hangs ends, and so fails
            for use in (shared.sync, lambda: shared.when_done(print), lambda: ftcuda.host_launch(shared, print)):
                try: use()
                except ftcuda.ForkedProcessError: pass
                else: os._exit(1)
            gc.collect()
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status == 0, f"a child ended with {status}"
finally:
    stop.set()
for thread in threads: thread.join()
assert len(counts) == 3 and not failed, failed
for semaphore, wanted in ((called, sum(each for each, _ in counts)), (raised, sum(each for _, each in counts))):
    for number in range(wanted): assert semaphore.acquire(timeout=10), f"{number} of {wanted}"
    assert not semaphore.acquire(blocking=False), f"more than {wanted}"
"""
