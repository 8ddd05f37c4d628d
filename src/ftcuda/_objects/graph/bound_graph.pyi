from typing import Any

from ftcuda._objects.graph.graph import Graph
from ftcuda._objects.stream.stream import AnyStream

class BoundGraph:
    graph: Graph
    parameters: tuple[str, ...]
    def launch(self, stream: AnyStream, /, **arguments: Any) -> None: ...
