"""Options of a program, by cuda.core's names, and their translation to NVRTC's."""

import os
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ftcuda._objects.device.device_handle import as_device
from ftcuda._objects.support.texts import zero_ended
from ftcuda.typing import CompilerBackendType, ObjectCodeFormatType

Text = str | os.PathLike[str]
Rule = tuple[str, Callable[[str, str, object], list[str]]]  # the compiler's word, and what makes its words of a value


def word(value: str) -> str:
    """Returns the word that `value` is. Formatting would give the name of a member of an enumeration of words."""
    return str.__str__(value)


# The rules below turn the value of a field, which is not None, into NVRTC's words for it.


def flag(name: str, option: str, value: object) -> list[str]:
    """``--option=true`` or ``--option=false``."""
    return [f"--{option}={'true' if as_bool(name, value) else 'false'}"]


def switch(name: str, option: str, value: object) -> list[str]:
    """``--option`` if true: NVRTC has no word for the contrary."""
    return [f"--{option}"] if as_bool(name, value) else []


def turned_on(name: str, option: str, value: object) -> list[str]:
    """``--option=on`` if true: NVRTC has no ``off``."""
    return [f"--{option}=on"] if as_bool(name, value) else []


def text(name: str, option: str, value: object) -> list[str]:
    """``--option=value``."""
    return [f"--{option}={as_text(name, value)}"]


def new_file(name: str, option: str, value: object) -> list[str]:
    """``--option=value`` of a file that NVRTC writes; where it cannot, it ends the process."""
    path = as_text(name, value)
    if os.path.isdir(path) or not os.access(path if os.path.exists(path) else os.path.dirname(path) or ".", os.W_OK):
        raise ValueError(f"option {name} must be a file that can be written, not {path!r}")
    return [f"--{option}={path}"]


def number(name: str, option: str, value: object) -> list[str]:
    """``--option=value`` of an int, or of a word that NVRTC understands."""
    return [f"--{option}={as_number(name, value)}"]


def texts(name: str, option: str, value: object) -> list[str]:
    """``--option=value`` for each of them."""
    return [f"--{option}={as_text(name, each)}" for each in as_items(value)]


def numbers(name: str, option: str, value: object) -> list[str]:
    """``--option=value`` for each of them."""
    return [f"--{option}={as_number(name, each)}" for each in as_items(value)]


def macros(name: str, option: str, value: object) -> list[str]:
    """``--option=NAME`` or ``--option=NAME=value`` for each of them. Else a RuntimeError, as in cuda.core."""
    result = []
    pairs = [value] if is_pair(value) else as_items(value)
    if isinstance(value, tuple) and not is_pair(value) and all(isinstance(each, str) for each in value):
        # Of two words it would be a name and its value; nobody should find that out by the number of his macros.
        raise RuntimeError(f"option {name} must be a list where it is several names, not {value!r}")
    for each in pairs:
        if is_pair(each):
            result.append(f"--{option}={as_text(name, each[0])}={as_text(name, each[1]) if each[1] else ''}")
        elif isinstance(each, str):
            result.append(f"--{option}={as_text(name, each)}")
        else:
            raise RuntimeError(f"option {name} must hold names, or tuples of a name and its value, not {each!r}")
    return result


def bundled(name: str, option: str, value: object) -> list[str]:
    """``--option=folder``, of the user's cache, into which NVRTC puts its headers."""
    return [f"--{option}={headers_folder()}"] if as_bool(name, value) else []


def not_of_nvrtc(name: str, option: str, value: object) -> list[str]:
    """Nothing, where nothing is asked for: another compiler has the option."""
    if value:
        raise ValueError(f"option {name} is for {option}; ftcuda compiles with NVRTC, which has nothing like it")
    return []


# By field, in the order in which cuda.core gives them to NVRTC. Source: NVRTC documentation 13.5, supported compile
# options.
RULES: dict[str, Rule] = {
    "relocatable_device_code": ("relocatable-device-code", flag),
    "extensible_whole_program": ("extensible-whole-program", switch),
    "debug": ("device-debug", switch),
    "lineinfo": ("generate-line-info", switch),
    "device_code_optimize": ("dopt", turned_on),
    "ptxas_options": ("ptxas-options", texts),
    "max_register_count": ("maxrregcount", number),
    "ftz": ("ftz", flag),
    "prec_sqrt": ("prec-sqrt", flag),
    "prec_div": ("prec-div", flag),
    "fma": ("fmad", flag),
    "use_fast_math": ("use_fast_math", switch),
    "extra_device_vectorization": ("extra-device-vectorization", switch),
    "link_time_optimization": ("dlink-time-opt", switch),
    "gen_opt_lto": ("gen-opt-lto", switch),
    "define_macro": ("define-macro", macros),
    "undefine_macro": ("undefine-macro", texts),
    "include_path": ("include-path", texts),
    "use_bundled_headers": ("use-bundled-headers", bundled),
    "pre_include": ("pre-include", texts),
    "no_source_include": ("no-source-include", switch),
    "std": ("std", text),
    "builtin_move_forward": ("builtin-move-forward", flag),
    "builtin_initializer_list": ("builtin-initializer-list", flag),
    "disable_warnings": ("disable-warnings", switch),
    "restrict": ("restrict", switch),
    "device_as_default_execution_space": ("device-as-default-execution-space", switch),
    "device_int128": ("device-int128", switch),
    "optimization_info": ("optimization-info", text),
    "no_display_error_number": ("no-display-error-number", switch),
    "diag_error": ("diag-error", numbers),
    "diag_suppress": ("diag-suppress", numbers),
    "diag_warn": ("diag-warn", numbers),
    "brief_diagnostics": ("brief-diagnostics", flag),
    "time": ("time", text),
    "split_compile": ("split-compile", number),
    "fdevice_syntax_only": ("fdevice-syntax-only", switch),
    "minimal": ("minimal", switch),
    "no_cache": ("no-cache", switch),
    "fdevice_time_trace": ("fdevice-time-trace", new_file),
    "device_float128": ("device-float128", switch),
    "frandom_seed": ("frandom-seed", number),
    "ofast_compile": ("Ofast-compile", text),
    "pch": ("pch", switch),
    "create_pch": ("create-pch", text),
    "use_pch": ("use-pch", text),
    "pch_dir": ("pch-dir", text),
    "pch_verbose": ("pch-verbose", flag),
    "pch_messages": ("pch-messages", flag),
    "instantiate_templates_in_pch": ("instantiate-templates-in-pch", flag),
    "extra_sources": ("NVVM", not_of_nvrtc),
    "use_libdevice": ("NVVM", not_of_nvrtc),
    "numba_debug": ("numba-debug", switch),
}


@dataclass
class ProgramOptions:
    """Options of a :class:`Program`. None leaves the compiler's default.

    Which options there are depends on NVRTC's version: compiling with one that it does not know raises `NVRTCError`,
    whose message names it.

    Attributes
    ----------
    name : str
        Of the program in the compiler's messages.
    arch : str
        ``compute_<CC>`` or ``sm_<CC>``; None is the calling thread's current device.
    std : str
        Language standard; None is C++17 on every NVRTC.
    define_macro : str, (str, str) or a collection of them
        A name, or a name and its value.
    include_path, pre_include : str, path or a collection of them
    undefine_macro, ptxas_options : str or a collection of them
    diag_error, diag_suppress, diag_warn : int or a collection of them
    max_register_count, split_compile : int
        Registers of a thread; threads of the compiler, 0 for as many as there are processors.
    link_time_optimization : bool
        The program becomes LTO IR, for a linker: compile it to ``"ltoir"``.
    restrict : bool
        All pointer parameters are ``__restrict__``. NVRTC 13.5 takes all later programs of the process for such too.
    use_bundled_headers : bool
        NVRTC (of CUDA 13) puts the headers that it carries into ``ftcuda/nvrtc-bundled-headers`` of the user's cache.
    time, fdevice_time_trace : str or path
        Files for what the compiler spent its time on; ``"-"`` as `time` is the log.
    pch, create_pch, use_pch, pch_dir, pch_verbose, pch_messages, instantiate_templates_in_pch : bool, str or path
        Precompiled headers (CUDA 12.8 and newer). See `Program.pch_status`.
    frandom_seed, ofast_compile, optimization_info : str
    extra_sources, use_libdevice
        For NVVM; refused, since ftcuda compiles with NVRTC.
    debug, lineinfo, use_fast_math, device_code_optimize, ... : bool
        As the NVRTC option of that name. Source: NVRTC documentation, supported compile options.
    """

    name: str | None = "default_program"
    arch: str | None = None
    relocatable_device_code: bool | None = None
    extensible_whole_program: bool | None = None
    debug: bool | None = None
    lineinfo: bool | None = None
    device_code_optimize: bool | None = None
    ptxas_options: str | Collection[str] | None = None
    max_register_count: int | None = None
    ftz: bool | None = None
    prec_sqrt: bool | None = None
    prec_div: bool | None = None
    fma: bool | None = None
    use_fast_math: bool | None = None
    extra_device_vectorization: bool | None = None
    link_time_optimization: bool | None = None
    gen_opt_lto: bool | None = None
    define_macro: str | tuple[str, str] | Collection[str | tuple[str, str]] | None = None
    undefine_macro: str | Collection[str] | None = None
    include_path: Text | Collection[Text] | None = None
    use_bundled_headers: bool | None = None
    pre_include: Text | Collection[Text] | None = None
    no_source_include: bool | None = None
    std: str | None = None
    builtin_move_forward: bool | None = None
    builtin_initializer_list: bool | None = None
    disable_warnings: bool | None = None
    restrict: bool | None = None
    device_as_default_execution_space: bool | None = None
    device_int128: bool | None = None
    optimization_info: str | None = None
    no_display_error_number: bool | None = None
    diag_error: int | Collection[int] | None = None
    diag_suppress: int | Collection[int] | None = None
    diag_warn: int | Collection[int] | None = None
    brief_diagnostics: bool | None = None
    time: Text | None = None
    split_compile: int | None = None
    fdevice_syntax_only: bool | None = None
    minimal: bool | None = None
    no_cache: bool | None = None
    fdevice_time_trace: Text | None = None
    device_float128: bool | None = None
    frandom_seed: str | int | None = None
    ofast_compile: str | None = None
    pch: bool | None = None
    create_pch: Text | None = None
    use_pch: Text | None = None
    pch_dir: Text | None = None
    pch_verbose: bool | None = None
    pch_messages: bool | None = None
    instantiate_templates_in_pch: bool | None = None
    extra_sources: Collection[tuple[str, str | bytes | bytearray]] | None = None
    use_libdevice: bool | None = None
    numba_debug: bool | None = None

    def __post_init__(self) -> None:
        self.as_nvrtc(("define_macro",))  # which cuda.core checks when it is used, and its programs rely on that

    def as_nvrtc(self, unchecked: tuple[str, ...] = ()) -> list[str]:
        """Returns the options as NVRTC wants them, without the architecture and those that are `unchecked`.

        Raises
        ------
        TypeError, ValueError
            A field has a value that means nothing to NVRTC; the message names it.
        """
        if self.name is None:
            self.name = "default_program"
        return translated(self, RULES, unchecked)

    def as_bytes(
        self, backend: CompilerBackendType | str, target_type: ObjectCodeFormatType | str | None = None
    ) -> list[bytes]:
        """Returns the options as the compiler gets them, the architecture first.

        Parameters
        ----------
        backend : CompilerBackendType or str
            ``"nvrtc"``, in any case.
        target_type : ObjectCodeFormatType or str, optional
            Makes no difference to NVRTC.

        Thread safety: atomic.

        Raises
        ------
        ValueError
            For other back ends, and for options that NVRTC has not.
        """
        if as_text("backend", backend).lower() != "nvrtc":
            raise ValueError(f"backend must be 'nvrtc', which is all that ftcuda compiles with, not {backend!r}")
        if target_type is not None:
            ObjectCodeFormatType(as_text("target_type", target_type).lower())
        arch = arch_of_device("sm_") if self.arch is None else word(self.arch)
        return [zero_ended(os.fsencode(option), "an option") for option in (f"-arch={arch}", *self.as_nvrtc())]


def translated(options: Any, rules: dict[str, Rule], unchecked: tuple[str, ...] = ()) -> list[str]:
    """The fields of `options` that are not None, in a compiler's words; name and architecture are only checked."""
    as_text("name", options.name)
    if options.arch is not None and not as_text("arch", options.arch).startswith(("compute_", "sm_")):
        raise ValueError(f"option arch must be compute_<CC> or sm_<CC>, not {options.arch!r}")
    result = []
    for name, (option, rule) in rules.items():
        value = getattr(options, name)
        if value is not None and name not in unchecked:
            result += rule(name, option, value)
    return result


def arch_of_device(prefix: str) -> str:
    """Of the calling thread's current device: ``sm_90``."""
    return f"{prefix}{as_device(None).arch}"


def as_bool(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"option {name} must be a bool or None, not {type(value).__name__}")
    return value


def as_text(name: str, value: object) -> str:
    if isinstance(value, os.PathLike):
        value = os.fsdecode(value)
    if not isinstance(value, str):
        raise TypeError(f"option {name} must be words or paths, not {type(value).__name__}")
    zero_ended(os.fsencode(value), f"option {name}")
    if not value:
        raise ValueError(f"option {name} must not be empty")
    return word(value)


def as_number(name: str, value: object) -> str:
    if isinstance(value, str):
        return as_text(name, value)
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"option {name} must be numbers, not {type(value).__name__}")
    return str(value.__index__())


def as_items(value: object) -> list[object]:
    """The items of a collection; another value is the only one. No iterators: options are read more than once."""
    is_one = isinstance(value, str | bytes | Mapping) or not isinstance(value, Collection)
    return [value] if is_one else list(value)


def is_pair(value: object) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(isinstance(each, str) for each in value)


def cache_folder() -> Path:
    """Of ftcuda, in the cache folder of the user, by the system's custom."""
    if sys.platform == "win32":
        cache = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "ftcuda"


def headers_folder() -> str:
    """Where NVRTC puts the headers that it carries."""
    return str(cache_folder() / "nvrtc-bundled-headers")
