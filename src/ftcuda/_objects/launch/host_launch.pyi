from collections.abc import Callable
from typing import Any

from ftcuda._objects.stream.stream import AnyStream

def host_launch(stream: AnyStream, fn: Callable[..., Any], *, user_data: Any = None) -> None: ...
