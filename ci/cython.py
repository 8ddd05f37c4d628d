"""Cython with a memory: ``python ci/cython.py ARGUMENTS``, which takes what it made of the same sources before.

Builds of ftcuda differ in the flags for C++, and what Cython makes is the same each time. It is kept in the folder that
FTCUDA_CYTHON_KEPT names, by default ``build/cython``, by all that it depends on: the module, every declaration (.pxd)
of the package, the arguments and Cython's version. What nobody asked for in two weeks goes.
"""

import hashlib
import os
import subprocess
import sys
import time
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

KEPT = Path(os.environ.get("FTCUDA_CYTHON_KEPT", Path(__file__).resolve().parent.parent / "build" / "cython"))
TWO_WEEKS = 14 * 24 * 3600.0  # seconds


def made(arguments: list[str]) -> bool:
    """Whether the output was there, or could be made and kept."""
    source, output = Path(arguments[-3]), Path(arguments[-1])
    package = Path(arguments[arguments.index("-I") + 1]).parent
    declarations = sorted(package.rglob("*.pxd"))
    key = hashlib.sha256(version("cython").encode())
    for argument in arguments[:-3]:
        key.update(b"\0" + argument.replace(str(package), "").encode())
    for path in [source, *declarations]:
        key.update(f"\0{path.relative_to(package)}\0".encode() + path.read_bytes())
    kept = KEPT / f"{source.stem}-{key.hexdigest()}.cpp"
    if not kept.exists():
        if subprocess.run([sys.executable, "-m", "cython", *arguments], check=False).returncode:
            return False
        KEPT.mkdir(parents=True, exist_ok=True)
        whole = kept.with_suffix(f".{os.getpid()}")
        whole.write_bytes(output.read_bytes())
        whole.replace(kept)
    kept.touch()
    output.write_bytes(kept.read_bytes())
    # For ninja: a build is asked again when any declaration changes.
    output.with_name(output.name + ".dep").write_text(
        f"{output}: {' '.join(map(str, [source, *declarations]))}\n", encoding="utf-8"
    )
    return True


def forget_old() -> None:
    """Removes what was not asked for in two weeks; another process may do so too."""
    for path in KEPT.glob("*.cpp"):
        with suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > TWO_WEEKS:
                path.unlink()


if __name__ == "__main__":
    if "-o" in sys.argv[-2:]:
        forget_old()
        sys.exit(not made(sys.argv[1:]))
    sys.exit(subprocess.run([sys.executable, "-m", "cython", *sys.argv[1:]], check=False).returncode)
