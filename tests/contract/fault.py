"""For programs of their own, whose kernel faults."""

from ftcuda import CUDAError
from tests.kernels import IS_SIMULATED


def report(stream):
    """Prints the name of the error that ended the stream's work, and on the simulated driver the fault."""
    try:
        stream.sync()
    except CUDAError as error:
        print(error.name)
    if IS_SIMULATED:
        from ftcuda.testing import simulation

        print(simulation.last_fault())
