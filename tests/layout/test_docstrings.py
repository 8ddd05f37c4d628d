"""Every public method and property says what it does and how it behaves beside other threads."""

import inspect
from dataclasses import is_dataclass

import pytest

import ftcuda


def members():
    for name in ftcuda.__all__:
        thing = getattr(ftcuda, name)
        if not inspect.isclass(thing):
            if callable(thing):
                yield name, thing
            continue
        assert inspect.getdoc(thing), name
        if is_dataclass(thing) or issubclass(thing, BaseException):
            continue
        for member, value in vars(thing).items():
            documented_with_the_class = inspect.isdatadescriptor(value) and f"{member} : " in inspect.getdoc(thing)
            if not member.startswith("_") and not documented_with_the_class:
                yield f"{name}.{member}", value


@pytest.mark.parametrize(("name", "member"), list(members()), ids=lambda value: value if isinstance(value, str) else "")
def test_thread_safety_is_documented(name, member):
    text = inspect.getdoc(member.__func__ if isinstance(member, staticmethod | classmethod) else member) or ""
    assert any(level in text for level in ("Thread safety: atomic", "Thread safety: shared")), f"{name}: {text!r}"
