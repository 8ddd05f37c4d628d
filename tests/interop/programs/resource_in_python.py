"""A memory resource of the program's own, of memory of the host, whose calls are counted."""

import ctypes

import numpy as np
from common import core, current_device


class HostMemory(core.MemoryResource):
    def __init__(self):
        self.blocks = {}
        self.freed = []

    def allocate(self, size, *, stream=None):
        block = ctypes.create_string_buffer(size)
        self.blocks[ctypes.addressof(block)] = block
        return core.Buffer.from_handle(ctypes.addressof(block), size, mr=self)

    def deallocate(self, ptr, size, *, stream=None):
        self.freed.append(size)
        del self.blocks[int(ptr)]

    @property
    def is_device_accessible(self):
        return False

    @property
    def is_host_accessible(self):
        return True

    @property
    def device_id(self):
        raise RuntimeError("of no device")


current_device()
resource = HostMemory()
buffer = resource.allocate(256)
assert buffer.size == 256 and buffer.memory_resource is resource
assert buffer.is_host_accessible and not buffer.is_device_accessible and not buffer.is_mapped
assert buffer.__dlpack_device__() == (1, 0)
array = np.from_dlpack(buffer)
array[:] = np.arange(256).astype(np.int8)
assert ctypes.string_at(int(buffer.handle), 256) == bytes(range(256))
del array
buffer.close()
assert resource.freed == [256] and not resource.blocks
