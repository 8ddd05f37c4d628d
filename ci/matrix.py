"""What ci/matrix.toml says, for workflows in JSON and for scripts in lines.

`python ci/matrix.py cells|wheels|kinds|rows|architectures|manylinux|cibuildwheel|identifiers [system [cibuildwheel]]`
`python ci/matrix.py cuda PROFILE`
"""

import json
import sys
import tomllib
from pathlib import Path

MATRIX = tomllib.loads((Path(__file__).parent / "matrix.toml").read_text())


def cells() -> list[dict]:
    """Returns one entry for each interpreter and CUDA major version that is tested."""
    return [
        {"kind": kind, "interpreter": tag, "cuda": major, "profiles": " ".join(profiles)}
        for kind, tag in MATRIX["tests"]["interpreters"].items()
        for major, profiles in MATRIX["tests"]["cuda"].items()
    ]


def wheels() -> list[dict]:
    """Returns one entry for each platform and version of cibuildwheel that wheels are built for and by."""
    runners = {"manylinux_x86_64": "ubuntu-24.04", "manylinux_aarch64": "ubuntu-24.04-arm", "win_amd64": "windows-2022"}
    return [
        {
            "platform": platform,
            "runner": runners[platform],
            "cibuildwheel": tool["version"],
            "build": " ".join(f"{tag}-*" for tag in tool["interpreters"]),
            "enable": tool["enable"],
        }
        for platform in MATRIX["wheels"]["platforms"]
        for tool in MATRIX["wheels"]["cibuildwheel"]
    ]


def identifiers(system: str, version: str | None = None) -> list[str]:
    """Returns what `cibuildwheel --print-build-identifiers` must print for all of a system's platforms."""
    platforms = [
        name for name in MATRIX["wheels"]["platforms"] if name.startswith("win" if system == "windows" else "many")
    ]
    tags = [
        tag
        for tool in MATRIX["wheels"]["cibuildwheel"]
        if version in (None, tool["version"])
        for tag in tool["interpreters"]
    ]
    return [f"{tag}-{platform}" for tag in tags for platform in platforms]


def rows() -> list[str]:
    """Returns the cells as words: what ci/python.sh calls the interpreter, the CUDA version, the profiles."""
    return [f"{cell['kind']} {cell['cuda']} {cell['profiles']}" for cell in cells()]


def cuda(profile: str) -> list[str]:
    """Returns the CUDA major version whose NVRTC belongs to a simulated driver."""
    found = [major for major, profiles in MATRIX["tests"]["cuda"].items() if profile in profiles]
    if not found:
        sys.exit(f"ci/matrix.toml has no driver profile '{profile}'")
    return found


if __name__ == "__main__":
    question, *rest = sys.argv[1:] or ["cells"]
    lines = {
        "kinds": lambda: MATRIX["tests"]["interpreters"],
        "rows": rows,
        "cuda": cuda,
        "architectures": lambda: [
            name.removeprefix("manylinux_") for name in MATRIX["wheels"]["platforms"] if name.startswith("manylinux_")
        ],
        "manylinux": lambda: [MATRIX["wheels"]["manylinux"]],
        "cibuildwheel": lambda: [
            "\t".join((each["cibuildwheel"], each["build"], each["enable"]))
            for each in wheels()
            if each["platform"] == MATRIX["wheels"]["platforms"][0]
        ],
        "identifiers": identifiers,
    }
    if question in lines:
        print("\n".join(lines[question](*rest)))
    else:
        print(json.dumps({"include": {"cells": cells, "wheels": wheels}[question]()}))
