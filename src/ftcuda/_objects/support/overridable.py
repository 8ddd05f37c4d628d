"""Properties that subclasses and their objects may replace."""

from collections.abc import Callable
from typing import Any


class overridable:
    """A property in whose place an object of a subclass may have an attribute, which it may not with `property`.

    Parameters
    ----------
    get : callable
        Takes the object. Its docstring is the property's.
    """

    def __init__(self, get: Callable[[Any], Any]) -> None:
        self._get = get
        self.__doc__ = (get.__doc__ or "").removeprefix(f"{get.__name__}(self)\n\n")  # Cython puts the signature there

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else self._get(instance)
