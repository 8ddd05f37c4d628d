"""What differs between the two libraries and the machines that the programs run on, and nothing else."""

import importlib
import os
import re

NAME = os.environ.get("FTCUDA_PROGRAM_CORE", "ftcuda")  # or cuda.core
core = importlib.import_module(NAME)
utils = importlib.import_module(f"{NAME}.utils")

CODE_TYPE = "ptx"  # what is loaded everywhere


def compiled(source, name_expressions=()):
    """Returns the code of a CUDA C++ source, for the current device."""
    made = core.Program(source, "c++", core.ProgramOptions(std="c++17", arch="compute_80")).compile(
        CODE_TYPE, name_expressions=name_expressions
    )
    newest = os.environ.get("FTCUDA_PROGRAM_PTX")
    if newest is None:
        return made
    # For drivers that are older than the compiler: there is nothing newer in these programs.
    text = re.sub(rb"\.version .*", b".version " + newest.encode(), bytes(made.code))
    return core.ObjectCode.from_ptx(text, symbol_mapping=made.symbol_mapping)


def current_device():
    device = core.Device()
    device.set_current()
    return device
