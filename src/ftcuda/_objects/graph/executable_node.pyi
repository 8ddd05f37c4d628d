from collections.abc import Buffer as Bytes
from collections.abc import Callable, Sequence
from typing import Any, SupportsIndex

from ftcuda._objects.code.kernel import Kernel
from ftcuda._objects.graph.graph_definition import GraphDefinition
from ftcuda._objects.launch.launch_config import LaunchConfig
from ftcuda._objects.memory.buffer import Buffer
from ftcuda._objects.stream.event import Event

class ExecutableGraphNode: ...

class SwitchableNode(ExecutableGraphNode):
    @property
    def is_enabled(self) -> bool: ...
    def enable(self) -> None: ...
    def disable(self) -> None: ...

class ExecutableKernelNode(SwitchableNode):
    def update(self, *, config: LaunchConfig, kernel: Kernel, args: Sequence[Any]) -> None: ...

class ExecutableMemsetNode(SwitchableNode):
    def update(
        self,
        *,
        dst: Buffer | int,
        value: int | Bytes,
        width: SupportsIndex,
        height: SupportsIndex = 1,
        pitch: SupportsIndex = 0,
    ) -> None: ...

class ExecutableMemcpyNode(SwitchableNode):
    def update(self, *, dst: Buffer | int, src: Buffer | int, size: SupportsIndex) -> None: ...

class ExecutableChildGraphNode(ExecutableGraphNode):
    def update(self, child: GraphDefinition) -> None: ...

class ExecutableEventRecordNode(ExecutableGraphNode):
    def update(self, event: Event) -> None: ...

class ExecutableEventWaitNode(ExecutableGraphNode):
    def update(self, event: Event) -> None: ...

class ExecutableHostCallbackNode(ExecutableGraphNode):
    def update(self, fn: Callable[[], object], *, user_data: int | Bytes | None = None) -> None: ...
