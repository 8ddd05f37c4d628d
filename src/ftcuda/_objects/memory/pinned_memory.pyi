from ftcuda._objects.memory.resource import MemoryResource
from ftcuda._objects.support.options import PinnedMemoryResourceOptions

class PinnedMemoryResource(MemoryResource):
    def __init__(self, options: PinnedMemoryResourceOptions | dict[str, object] | None = None) -> None: ...

class LegacyPinnedMemoryResource(MemoryResource):
    def __init__(self) -> None: ...
