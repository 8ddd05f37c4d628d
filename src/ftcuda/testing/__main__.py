"""``python -m ftcuda.testing env``: what makes any program of this machine use the simulated driver as libcuda.

The output is for a shell: ``eval "$(python -m ftcuda.testing env)"``. It also puts an NVRTC in front of the real one,
whose cubins carry the PTX that the simulated driver runs (``docs/decisions/0014-an-nvrtc-in-front.md``).
"""

import argparse
import hashlib
import os
import re
import shlex
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

from ftcuda.__main__ import find_nvrtc

SIMULATED_DRIVER = Path(str(files("ftcuda") / "libftcuda_simdriver.so"))
NVRTC_IN_FRONT = Path(str(files("ftcuda") / "libftcuda_simnvrtc.so"))
NAMES = ("libcuda.so.1", "libcuda.so")  # what programs give to dlopen


def cache_folder() -> Path:
    """Returns the folder of the user's own for the links, one for each installation of ftcuda."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    installation = hashlib.sha256(os.fsencode(SIMULATED_DRIVER)).hexdigest()[:16]
    return Path(cache, "ftcuda", "libcuda", installation)


def real_nvrtc() -> Path | None:
    """Returns the NVRTC that ftcuda uses: ``FTCUDA_NVRTC``, or that of the interpreter's packages. None without one."""
    candidates = (Path(path).resolve() for path in find_nvrtc())
    return next((path for path in candidates if path.is_file() and path != NVRTC_IN_FRONT.resolve()), None)


def nvrtc_name(nvrtc: Path) -> str:
    """Returns the name by which programs look for an NVRTC of a version: ``libnvrtc.so.13``, say.

    Raises
    ------
    ValueError
        If the file's name does not tell the version.
    """
    found = re.fullmatch(r"libnvrtc\.so\.(\d+)[.\d]*", nvrtc.resolve().name)
    if not found:
        raise ValueError(f"{nvrtc} is not named like an NVRTC, as libnvrtc.so.13 is")
    return "libnvrtc.so." + ("11.2" if found[1] == "11" else found[1])  # 11.2 stands for all that followed in CUDA 11


def link(folder: Path, targets: dict[str, Path]) -> None:
    """Makes libraries found in a folder by other names.

    Parameters
    ----------
    folder : Path
        Made if it is not there. What else is in it stays.
    targets : dict
        The library for each name.

    Raises
    ------
    OSError
        If the folder cannot be written.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, library in targets.items():
        # Under another name first, and then in place of an old one: programs that start meanwhile find one of the two.
        with tempfile.TemporaryDirectory(dir=folder) as aside:
            made = Path(aside, name)
            made.symlink_to(library)
            made.replace(folder / name)


def environment(folder: Path, nvrtc: Path | None) -> dict[str, str]:
    """Returns the variables with which a program finds the driver in a folder before any other, and NVRTC's front.

    Parameters
    ----------
    folder : Path
        Where `link` made the links.
    nvrtc : Path or None
        The real NVRTC.
    """
    others = [path for path in os.environ.get("LD_LIBRARY_PATH", "").split(":") if path and path != str(folder)]
    variables = {"LD_LIBRARY_PATH": ":".join([str(folder), *others]), "FTCUDA_DRIVER": "sim"}
    if nvrtc is not None:
        name = nvrtc_name(nvrtc)  # which the loader looks for in the folder: paths with spaces cannot stand here
        before = [entry for entry in re.split("[ :]", os.environ.get("LD_PRELOAD", "")) if entry and entry != name]
        variables |= {"LD_PRELOAD": ":".join([*before, name]), "FTCUDA_NVRTC": str(nvrtc)}
    return variables


def main() -> int:
    """Returns the exit status: 1 where there is nothing to print."""
    parser = argparse.ArgumentParser(prog="python -m ftcuda.testing", description=__doc__)
    parser.add_argument("command", choices=["env"], help="print the variables; env is all there is")
    parser.add_argument("--folder", type=Path, help="where the links are made, in place of the user's cache")
    parser.add_argument("--nvrtc", type=Path, help="the real NVRTC, in place of the one that ftcuda finds")
    options = parser.parse_args()
    if sys.platform != "linux":
        print(
            "cannot put the simulated driver in libcuda's place: that is done on Linux only; "
            "ftcuda itself uses it with FTCUDA_DRIVER=sim",
            file=sys.stderr,
        )
        return 1
    folder = (options.folder or cache_folder()).resolve()
    nvrtc = options.nvrtc.resolve() if options.nvrtc else real_nvrtc()
    targets = dict.fromkeys(NAMES, SIMULATED_DRIVER)
    try:
        if nvrtc is None:
            print("no NVRTC was found, so cubins will be refused; name it with --nvrtc", file=sys.stderr)
        else:
            nvrtc.stat()
            if folder == nvrtc.parent:
                raise ValueError(f"a link in {folder} would replace it")
            targets |= dict.fromkeys((nvrtc_name(nvrtc), "libnvrtc.so"), NVRTC_IN_FRONT)
    except (OSError, ValueError) as problem:
        print(f"cannot put an NVRTC in front: {problem}; name another --nvrtc or --folder", file=sys.stderr)
        return 1
    try:
        link(folder, targets)
    except OSError as problem:
        print(f"cannot make the links to the simulated driver: {problem}; name another --folder", file=sys.stderr)
        return 1
    for name, value in environment(folder, nvrtc).items():
        print(f"export {name}={shlex.quote(value)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
