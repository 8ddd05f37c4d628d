from ftcuda._objects.memory.resource import MemoryResource

class WrappedMemoryResource(MemoryResource):
    @property
    def upstream(self) -> MemoryResource: ...
