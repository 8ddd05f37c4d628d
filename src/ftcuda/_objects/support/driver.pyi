from typing import NamedTuple

class DriverInfo(NamedTuple):
    path: str
    version: str
    simulated: bool

def driver_info() -> DriverInfo: ...
