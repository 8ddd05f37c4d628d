from typing import Any

driver_v1: Any  # a capsule

def get_include() -> str: ...
