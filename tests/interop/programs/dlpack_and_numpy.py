"""Memory as arrays of numpy: shared by DLPack, copied, filled, and read-only."""

import numpy as np
from common import core, current_device, utils

device = current_device()
stream = device.create_stream()
pinned = core.LegacyPinnedMemoryResource().allocate(64)
shared = np.from_dlpack(pinned)
assert shared.dtype == np.int8 and shared.shape == (64,)
pinned.fill(7, stream=stream)
stream.sync()
assert (shared == 7).all()
on_device = device.allocate(64, stream=stream)
assert on_device.__dlpack_device__() == (2, 0) and pinned.__dlpack_device__() == (3, 0)
on_device.fill(b"\x01\x02\x03\x04", stream=stream)
on_device.copy_to(pinned, stream=stream)
stream.sync()
assert (shared.view(np.uint32) == 0x04030201).all()
view = utils.StridedMemoryView.from_dlpack(pinned, stream_ptr=-1)
assert view.ptr == int(pinned.handle) and view.is_device_accessible and view.device_id == 0
frozen = np.arange(6, dtype=np.float32).reshape(2, 3)
frozen.flags.writeable = False
of_host = utils.StridedMemoryView.from_array_interface(frozen)
assert of_host.readonly and of_host.shape == (2, 3) and of_host.device_id == 0 and of_host.dtype == np.float32
on_device.close(stream)
