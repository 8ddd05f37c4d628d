"""Between two rounds of a test: nothing runs, and nothing is kept that nobody uses."""

import gc
from contextlib import suppress

from ftcuda import Device
from ftcuda.memory import wait_for_deallocations


def empty_caches() -> None:
    """Gives back the memory that ftcuda keeps for the next allocation or copy on each device. Thread safety: shared."""
    for device in Device.get_all_devices():
        with suppress(NotImplementedError):  # one written in Python may keep what it likes
            device.memory_resource.trim()
        device.trim_staging()


def wait_for_all() -> None:
    """Waits for all work on all devices. Thread safety: shared."""
    for device in Device.get_all_devices():
        device.sync()


def come_to_rest() -> None:
    """Waits for all work, and until memory is with its resource again. Thread safety: shared."""
    wait_for_all()
    wait_for_deallocations()


def give_back() -> None:
    """What `settle` does, without collecting garbage. Thread safety: shared."""
    come_to_rest()  # a cache keeps what work still uses
    empty_caches()
    come_to_rest()  # memory is given back in the order of a stream


def settle() -> None:
    """Collects garbage, empties the caches and waits for all devices, so that live handles may be compared.

    Warns of what went wrong in destructors, as `Device.sync` does.

    Thread safety: shared.
    """
    gc.collect()
    come_to_rest()
    gc.collect()  # while another thread collected, the first one returned at once
    give_back()
