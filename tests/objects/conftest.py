"""What tests of the public objects share."""

import pytest


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
