"""Where the files lie that are installed beside the modules."""

from importlib.resources import as_file, files
from pathlib import Path


def installed(name: str) -> Path:
    """Returns the path of a file of the package, which in an editable installation may be a result of its build.

    Parameters
    ----------
    name : str
        The path below the package.
    """
    with as_file(files("ftcuda").joinpath(name)) as path:  # the package is a folder: nothing is unpacked
        return path
