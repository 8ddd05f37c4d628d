"""Options of a program, by cuda.core's names, and their translation to NVRTC's."""

from dataclasses import dataclass, fields

# Fields that NVRTC takes as --option=true or --option=false.
BOOLEAN = {
    "relocatable_device_code": "relocatable-device-code",
    "extensible_whole_program": "extensible-whole-program",
    "ftz": "ftz",
    "prec_sqrt": "prec-sqrt",
    "prec_div": "prec-div",
    "fma": "fmad",
    "builtin_move_forward": "builtin-move-forward",
    "builtin_initializer_list": "builtin-initializer-list",
}

# Fields that NVRTC takes as a bare --option when they are true.
SWITCHES = {
    "debug": "device-debug",
    "lineinfo": "generate-line-info",
    "use_fast_math": "use_fast_math",
    "extra_device_vectorization": "extra-device-vectorization",
    "no_source_include": "no-source-include",
    "disable_warnings": "disable-warnings",
    "restrict": "restrict",
    "device_as_default_execution_space": "device-as-default-execution-space",
    "device_int128": "device-int128",
    "no_display_error_number": "no-display-error-number",
    "fdevice_syntax_only": "fdevice-syntax-only",
    "minimal": "minimal",
}

# Fields that NVRTC takes as --option=value, once for each value of a list.
VALUES = {
    "max_register_count": "maxrregcount",
    "undefine_macro": "undefine-macro",
    "include_path": "include-path",
    "pre_include": "pre-include",
    "ptxas_options": "ptxas-options",
    "optimization_info": "optimization-info",
    "diag_error": "diag-error",
    "diag_suppress": "diag-suppress",
    "diag_warn": "diag-warn",
    "split_compile": "split-compile",
}


@dataclass
class ProgramOptions:
    """Options of a :class:`Program`. None leaves the compiler's default.

    Attributes
    ----------
    name : str
        Of the program in the compiler's messages.
    arch : str
        ``compute_<CC>`` or ``sm_<CC>``; None is the calling thread's current device.
    std : str
        Language standard; C++17 on every NVRTC.
    define_macro : str, (str, str) or a list of them
        A name, or a name and its value.
    include_path, pre_include, undefine_macro, ptxas_options : str or list of str
    debug, lineinfo, use_fast_math, ... : bool
        As the NVRTC option of that name. Source: NVRTC documentation, supported compile options.
    """

    name: str = "default_program"
    arch: str | None = None
    relocatable_device_code: bool | None = None
    extensible_whole_program: bool | None = None
    debug: bool | None = None
    lineinfo: bool | None = None
    ptxas_options: str | list[str] | None = None
    max_register_count: int | None = None
    ftz: bool | None = None
    prec_sqrt: bool | None = None
    prec_div: bool | None = None
    fma: bool | None = None
    use_fast_math: bool | None = None
    extra_device_vectorization: bool | None = None
    define_macro: str | tuple[str, str] | list[str | tuple[str, str]] | None = None
    undefine_macro: str | list[str] | None = None
    include_path: str | list[str] | None = None
    pre_include: str | list[str] | None = None
    no_source_include: bool | None = None
    std: str | None = "c++17"
    builtin_move_forward: bool | None = None
    builtin_initializer_list: bool | None = None
    disable_warnings: bool | None = None
    restrict: bool | None = None
    device_as_default_execution_space: bool | None = None
    device_int128: bool | None = None
    optimization_info: str | None = None
    no_display_error_number: bool | None = None
    diag_error: int | list[int] | None = None
    diag_suppress: int | list[int] | None = None
    diag_warn: int | list[int] | None = None
    split_compile: int | None = None
    fdevice_syntax_only: bool | None = None
    minimal: bool | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if (field.name in BOOLEAN or field.name in SWITCHES) and not (value is None or isinstance(value, bool)):
                raise TypeError(f"option {field.name} must be a bool or None, not {type(value).__name__}")
        if self.arch is not None and not self.arch.startswith(("compute_", "sm_")):
            raise ValueError(f"option arch must be compute_<CC> or sm_<CC>, not {self.arch!r}")

    def as_nvrtc(self) -> list[str]:
        """Returns the options as NVRTC wants them, without the architecture."""
        result = [f"--std={self.std or 'c++17'}"]
        for name, option in BOOLEAN.items():
            value = getattr(self, name)
            if value is not None:
                result.append(f"--{option}={'true' if value else 'false'}")
        result += [f"--{option}" for name, option in SWITCHES.items() if getattr(self, name)]
        for name, option in VALUES.items():
            result += [f"--{option}={value}" for value in as_list(getattr(self, name))]
        for macro in as_list(self.define_macro):
            result.append(f"--define-macro={macro if isinstance(macro, str) else '='.join(macro)}")
        return result


def as_list(value: object) -> list:
    if value is None:
        return []
    return list(value) if isinstance(value, list) else [value]
