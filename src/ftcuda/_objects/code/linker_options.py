"""Options of a linker, by cuda.core's names, and their translation to nvJitLink's."""

import re
import warnings
from collections.abc import Collection
from dataclasses import dataclass, fields

from ftcuda._objects.code.program_options import (
    ProgramOptions,
    Rule,
    arch_of_device,
    as_text,
    flag,
    number,
    switch,
    texts,
    translated,
    word,
)
from ftcuda._objects.support.texts import zero_ended
from ftcuda.typing import CompilerBackendType

ARCH = re.compile(r"(compute|sm)_\d\d\w*")  # one digit ends the process, in nvJitLink 13.5


def level(name: str, option: str, value: object) -> list[str]:
    """``--O0`` or ``--O3``."""
    if isinstance(value, bool) or value not in (0, 3):
        raise ValueError(f"option {name} must be 0 or 3, not {value!r}")
    return [f"--{option}{value}"]


# By field, in the order in which cuda.core gives them to nvJitLink. Source: nvJitLink documentation 13.5, options.
RULES: dict[str, Rule] = {
    "max_register_count": ("maxrregcount", number),
    "time": ("time", switch),
    "verbose": ("verbose", switch),
    "link_time_optimization": ("lto", switch),
    "ptx": ("ptx", switch),
    "optimization_level": ("O", level),
    "debug": ("g", switch),
    "lineinfo": ("lineinfo", switch),
    "ftz": ("ftz", flag),
    "prec_div": ("prec-div", flag),
    "prec_sqrt": ("prec-sqrt", flag),
    "fma": ("fma", flag),
    "kernels_used": ("kernels-used", texts),
    "variables_used": ("variables-used", texts),
    "optimize_unused_variables": ("optimize-unused-variables", switch),
    "ptxas_options": ("Xptxas", texts),
    "split_compile": ("split-compile", number),
    "split_compile_extended": ("split-compile-extended", number),
    "no_cache": ("no-cache", switch),
}


@dataclass
class LinkerOptions:
    """Options of a :class:`Linker`. None leaves the linker's default.

    Attributes
    ----------
    name : str
        Of the code that is made.
    arch : str
        ``sm_<CC>``, or ``compute_<CC>`` for PTX; None is the calling thread's current device.
    link_time_optimization : bool
        All parts are optimized as one program. Needed for LTO IR.
    ptx : bool
        PTX is made, by link-time optimization. What :meth:`Linker.link` is asked for says so too.
    optimization_level : int
        0 or 3.
    max_register_count : int
        Registers of a thread.
    kernels_used, variables_used : str or a collection of them
        Others may be removed.
    ptxas_options : str or a collection of them
    split_compile, split_compile_extended : int
        Threads of the linker, 0 for as many as there are processors.
    time, verbose : bool
        What :meth:`Linker.get_info_log` tells.
    debug, lineinfo, ftz, prec_div, prec_sqrt, fma, optimize_unused_variables, no_cache : bool
        As the nvJitLink option of that name. Source: nvJitLink documentation, options.
    numba_debug : bool
        Means nothing to a linker, and is a `DeprecationWarning`, as in cuda.core.
    """

    name: str | None = "<default linker>"
    arch: str | None = None
    max_register_count: int | None = None
    time: bool | None = None
    verbose: bool | None = None
    link_time_optimization: bool | None = None
    ptx: bool | None = None
    optimization_level: int | None = None
    debug: bool | None = None
    lineinfo: bool | None = None
    ftz: bool | None = None
    prec_div: bool | None = None
    prec_sqrt: bool | None = None
    fma: bool | None = None
    kernels_used: str | Collection[str] | None = None
    variables_used: str | Collection[str] | None = None
    optimize_unused_variables: bool | None = None
    ptxas_options: str | Collection[str] | None = None
    split_compile: int | None = None
    split_compile_extended: int | None = None
    no_cache: bool | None = None
    numba_debug: bool | None = None

    def __post_init__(self) -> None:
        if self.numba_debug is not None:
            warnings.warn("option numba_debug means nothing to a linker", DeprecationWarning, stacklevel=3)

    def as_nvjitlink(self) -> list[str]:
        """Returns the options as nvJitLink wants them, without the architecture.

        Raises
        ------
        TypeError, ValueError
            A field has a value that means nothing to nvJitLink; the message names it.
        """
        if self.name is None:
            self.name = "<default linker>"
        if self.arch is not None and not ARCH.fullmatch(as_text("arch", self.arch)):
            raise ValueError(f"option arch must be compute_<CC> or sm_<CC>, not {self.arch!r}")
        return [option[1:] for option in translated(self, RULES)]  # with one dash

    def as_bytes(self, backend: CompilerBackendType | str = "nvjitlink") -> list[bytes]:
        """Returns the options as the linker gets them, the architecture first.

        Parameters
        ----------
        backend : CompilerBackendType or str
            ``"nvjitlink"``, in any case.

        Thread safety: atomic.

        Raises
        ------
        ValueError
            For other back ends.
        """
        if as_text("backend", backend).lower() != "nvjitlink":
            raise ValueError(f"backend must be 'nvjitlink', which is all that ftcuda links with, not {backend!r}")
        arch = arch_of_device("sm_") if self.arch is None else word(self.arch)
        return [zero_ended(option, "an option") for option in (f"-arch={arch}", *self.as_nvjitlink())]


def of_program(options: ProgramOptions) -> LinkerOptions:
    """Those of a program of PTX, which a linker makes a cubin of.

    Raises
    ------
    ValueError
        One of them is of CUDA C++.
    """
    mine = {field.name for field in fields(LinkerOptions)}
    values = {field.name: getattr(options, field.name) for field in fields(ProgramOptions)}
    given = {name: value for name, value in values.items() if value is not None}
    if others := sorted(given.keys() - mine):
        raise ValueError(f"option {others[0]} is for CUDA C++, and the program is PTX")
    if "time" in given:
        given["time"] = True
    return LinkerOptions(**given)
