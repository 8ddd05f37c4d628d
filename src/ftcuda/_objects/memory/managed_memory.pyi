from ftcuda._objects.memory.resource import MemoryResource
from ftcuda._objects.support.options import ManagedMemoryResourceOptions

class ManagedMemoryResource(MemoryResource):
    def __init__(self, options: ManagedMemoryResourceOptions | dict[str, object] | None = None) -> None: ...
