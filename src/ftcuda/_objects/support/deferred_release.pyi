from collections.abc import Callable
from typing import Any

def run_contained(function: Callable[..., Any], *arguments: object, **keywords: object) -> None: ...
