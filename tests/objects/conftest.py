"""What tests of the public objects share."""

from contextlib import suppress

import pytest

from ftcuda import OutOfMemoryError, SynchronousMemoryResource
from ftcuda.testing import simulation


@pytest.fixture
def make_builder(device):
    """Makes builders, which several threads of a test do not share."""
    made = []

    def make():
        builder = device.create_graph_builder()
        made.append(builder)
        return builder

    yield make
    for builder in made:
        builder.close()


@pytest.fixture
def limit_memory(device):
    """Leaves so many bytes to the device, beside what other tests have not given back."""

    def limit(size):
        simulation.limit_memory(1)
        with suppress(OutOfMemoryError):  # who finds no memory has all given back that nobody needs
            SynchronousMemoryResource(device).allocate(1).close()
        simulation.limit_memory(0)
        free, total = device.memory_info
        simulation.limit_memory(total - free + size)

    yield limit
    simulation.limit_memory(0)
