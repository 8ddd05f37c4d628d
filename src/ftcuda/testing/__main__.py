"""``python -m ftcuda.testing env``: what makes any program of this machine use the simulated driver as libcuda.

The output is for a shell: ``eval "$(python -m ftcuda.testing env)"``.
"""

import argparse
import hashlib
import os
import shlex
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

SIMULATED_DRIVER = Path(str(files("ftcuda") / "libftcuda_simdriver.so"))
NAMES = ("libcuda.so.1", "libcuda.so")  # what programs give to dlopen


def cache_folder() -> Path:
    """Returns the folder of the user's own for the links, one for each installation of ftcuda."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    installation = hashlib.sha256(os.fsencode(SIMULATED_DRIVER)).hexdigest()[:16]
    return Path(cache, "ftcuda", "libcuda", installation)


def link_driver(folder: Path) -> None:
    """Makes the simulated driver found in a folder by the driver's names.

    Parameters
    ----------
    folder : Path
        Made if it is not there. What else is in it stays.

    Raises
    ------
    OSError
        If the folder cannot be written.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in NAMES:
        # Under another name first, and then in place of an old one: programs that start meanwhile find one of the two.
        with tempfile.TemporaryDirectory(dir=folder) as aside:
            link = Path(aside, name)
            link.symlink_to(SIMULATED_DRIVER)
            link.replace(folder / name)


def environment(folder: Path) -> dict[str, str]:
    """Returns the variables with which a program finds the driver in a folder before any other.

    Parameters
    ----------
    folder : Path
        Where `link_driver` made the links.
    """
    others = [path for path in os.environ.get("LD_LIBRARY_PATH", "").split(":") if path and path != str(folder)]
    return {"LD_LIBRARY_PATH": ":".join([str(folder), *others]), "FTCUDA_DRIVER": "sim"}


def main() -> int:
    """Returns the exit status: 1 where there is nothing to print."""
    parser = argparse.ArgumentParser(prog="python -m ftcuda.testing", description=__doc__)
    parser.add_argument("command", choices=["env"], help="print the variables; env is all there is")
    parser.add_argument("--folder", type=Path, help="where the links are made, in place of the user's cache")
    options = parser.parse_args()
    if sys.platform != "linux":
        print(
            "cannot put the simulated driver in libcuda's place: that is done on Linux only; "
            "ftcuda itself uses it with FTCUDA_DRIVER=sim",
            file=sys.stderr,
        )
        return 1
    folder = (options.folder or cache_folder()).resolve()
    try:
        link_driver(folder)
    except OSError as problem:
        print(f"cannot make the links to the simulated driver: {problem}; name another --folder", file=sys.stderr)
        return 1
    for name, value in environment(folder).items():
        print(f"export {name}={shlex.quote(value)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
