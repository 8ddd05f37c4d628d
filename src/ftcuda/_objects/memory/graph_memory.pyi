from ftcuda._objects.device.device import Device
from ftcuda._objects.graph.graph_builder import GraphBuilder
from ftcuda._objects.memory.buffer import Buffer
from ftcuda._objects.memory.resource import MemoryResource

class GraphMemoryResourceAttributes:
    reserved_mem_high: int
    used_mem_high: int
    @property
    def reserved_mem_current(self) -> int: ...
    @property
    def used_mem_current(self) -> int: ...

class GraphMemoryResource(MemoryResource):
    def __init__(self, device_id: Device | int) -> None: ...
    def allocate(self, size: int, *, stream: GraphBuilder) -> Buffer: ...  # type: ignore[override]
    def deallocate(self, ptr: int, size: int, *, stream: GraphBuilder) -> None: ...
    @property
    def attributes(self) -> GraphMemoryResourceAttributes: ...  # type: ignore[override]
