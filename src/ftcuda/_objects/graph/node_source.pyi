from collections.abc import Buffer as Bytes
from collections.abc import Callable, Sequence
from typing import Any, SupportsIndex

from ftcuda._objects.code.kernel import Kernel
from ftcuda._objects.device.device import Device
from ftcuda._objects.graph.graph_condition import GraphCondition
from ftcuda._objects.graph.graph_definition import GraphDefinition
from ftcuda._objects.graph.graph_node import (
    AllocNode,
    ChildGraphNode,
    EmptyNode,
    EventRecordNode,
    EventWaitNode,
    FreeNode,
    GraphNode,
    HostCallbackNode,
    IfElseNode,
    IfNode,
    KernelNode,
    MemcpyNode,
    MemsetNode,
    SwitchNode,
    WhileNode,
)
from ftcuda._objects.launch.launch_config import LaunchConfig
from ftcuda._objects.memory.buffer import Buffer
from ftcuda._objects.stream.event import Event
from ftcuda.typing import GraphMemoryType

class NodeSource:
    def launch(self, config: LaunchConfig, kernel: Kernel, *args: Any) -> KernelNode: ...
    def memset(
        self,
        dst: Buffer | int,
        value: int | Bytes,
        width: SupportsIndex,
        height: SupportsIndex = 1,
        pitch: SupportsIndex = 0,
        *,
        dst_owner: object = None,
    ) -> MemsetNode: ...
    def memcpy(
        self,
        dst: Buffer | int,
        src: Buffer | int,
        size: SupportsIndex,
        *,
        dst_owner: object = None,
        src_owner: object = None,
    ) -> MemcpyNode: ...
    def allocate(
        self,
        size: SupportsIndex,
        *,
        device: Device | int | None = None,
        memory_type: GraphMemoryType | str = ...,
        peer_access: Sequence[Device | int] | None = None,
    ) -> AllocNode: ...
    def deallocate(self, dptr: int) -> FreeNode: ...
    def record(self, event: Event) -> EventRecordNode: ...
    def wait(self, event: Event) -> EventWaitNode: ...
    def callback(self, fn: Callable[[], object], *, user_data: int | Bytes | None = None) -> HostCallbackNode: ...
    def embed(self, child: GraphDefinition) -> ChildGraphNode: ...
    def join(self, *nodes: GraphNode) -> EmptyNode: ...
    def if_then(self, condition: GraphCondition) -> IfNode: ...
    def if_else(self, condition: GraphCondition) -> IfElseNode: ...
    def while_loop(self, condition: GraphCondition) -> WhileNode: ...
    def switch(self, condition: GraphCondition, count: SupportsIndex) -> SwitchNode: ...
