"""Why a call failed: the driver layer names what the driver said, the core the rest, and each has an exception."""

import re
from pathlib import Path

from ftcuda._objects.support.raising import OUTCOMES

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "ftcuda"


def enumerators(path, head):
    body = re.search(rf"enum class Reason{head}\n(.*?)\n *(?:\}};)?\n", (PACKAGE / path).read_text(), re.DOTALL)[1]
    return re.findall(r"^ *(\w+)(?: = [^,]*)?,?(?: *//.*)?$", body, re.MULTILINE)


CORE = enumerators("_core/sync/reason.hpp", r" : std::uint8_t \{")


def test_the_driver_layer_names_what_the_driver_said():
    said = ["none", "driver", "absent", "in_host_function"]
    assert enumerators("_driver/status.hpp", r" : std::uint8_t \{") == CORE[: len(said)] == said


def test_the_objects_know_every_reason():
    assert enumerators("_objects/core/sync/reason.pxd", ":") == CORE


def test_every_reason_is_raised_as_something():
    raised = {CORE.index(name) for name in CORE} - {CORE.index("none"), CORE.index("interrupted")}  # a handler raised that
    assert set(OUTCOMES) == raised
    assert all(issubclass(error, Exception) for error, _, _ in OUTCOMES.values())
