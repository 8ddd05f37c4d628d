"""Linking: what several programs share becomes one image."""

import os

from libcpp.string cimport string
from libcpp.vector cimport vector

from core.driver.nvjitlink cimport Input, Linking, Part, link as nvjitlink_link, load_nvjitlink, nvjitlink_loaded
from core.driver.nvjitlink cimport nvjitlink_version as core_nvjitlink_version
from ftcuda._objects.code.object_code cimport ObjectCode, make_object_code

from cuda.pathfinder import DynamicLibNotFoundError, load_nvidia_dynamic_lib
from ftcuda._objects.code.linker_options import LinkerOptions
from ftcuda._objects.code.program_options import arch_of_device, word
from ftcuda._objects.support.options import checked
from ftcuda._objects.support.texts import zero_ended
from ftcuda.errors import ClosedError, ForkedProcessError, LinkerError
from ftcuda.typing import CompilerBackendType, ObjectCodeFormatType

INPUTS = {
    "cubin": Input.cubin, "ptx": Input.ptx, "ltoir": Input.ltoir, "fatbin": Input.fatbin, "object": Input.object_file,
    "library": Input.library,
}
TARGETS = (ObjectCodeFormatType.CUBIN, ObjectCodeFormatType.PTX)


def find_nvjitlink():
    """Returns where nvJitLink may be, best first: FTCUDA_NVJITLINK, then what cuda-pathfinder finds."""
    if path := os.environ.get("FTCUDA_NVJITLINK"):
        return [path]
    try:
        return [load_nvidia_dynamic_lib("nvJitLink").abs_path]
    except DynamicLibNotFoundError:
        return []


cdef int require_nvjitlink() except -1:
    cdef vector[string] paths
    cdef string problem
    cdef bint found
    if nvjitlink_loaded():
        return 0
    for path in find_nvjitlink():
        paths.push_back(zero_ended(os.fsencode(path), "a path of nvJitLink"))
    with nogil:
        found = load_nvjitlink(paths, problem)
    if not found:
        raise LinkerError(
            "cannot link: nvJitLink of CUDA 12.3 or newer was not found"
            + (f" ({problem.decode('utf-8', 'replace')})" if not problem.empty() else "")
            + "; install ftcuda[cu12] or ftcuda[cu13], or set FTCUDA_NVJITLINK to the library's path"
        )
    return 0


def nvjitlink_version():
    """nvJitLink's ``(major, minor)`` version, loading it if this is its first use."""
    require_nvjitlink()
    return core_nvjitlink_version().first, core_nvjitlink_version().second


class Linker:
    """Links object code, of which parts may call each other. Constant; links any number of times, from any thread.

    Source: nvJitLink, of CUDA 12.3 or newer, which is loaded at the first use.

    Parameters
    ----------
    *object_codes : ObjectCode
        One or more: relocatable PTX or cubins, LTO IR, fatbins, objects and libraries.
    options : LinkerOptions or dict, optional
        Read now: what becomes of them later makes no difference.

    Thread safety: atomic.
    """

    def __init__(self, *object_codes, options=None):
        if hasattr(self, "_codes"):
            raise TypeError("a linker is constant: make another one")
        if not object_codes:
            raise ValueError("there is nothing to link: give at least one ObjectCode")
        for code in object_codes:
            if not isinstance(code, ObjectCode):
                raise TypeError(f"a linker links ObjectCode, not {type(code).__name__}")
        options = checked(options, LinkerOptions)
        self._arguments = tuple(options.as_nvjitlink())  # and checks them all
        self._name = word(options.name)
        self._arch = None if options.arch is None else word(options.arch)
        self._logs = "", ""
        self._codes = object_codes

    def link(self, target_type):
        """Links.

        Parameters
        ----------
        target_type : ObjectCodeFormatType or str
            ``"cubin"``; or ``"ptx"``, with the option ``link_time_optimization`` and parts that are LTO IR.

        Returns
        -------
        ObjectCode
            With the names of all parts by expression.

        Thread safety: shared. Detached from the interpreter.

        Raises
        ------
        LinkerError
            With the linker's messages.
        ClosedError
            The linker was closed.
        ForkedProcessError
            The process was forked while another thread linked.
        """
        cdef Linking linking
        cdef Part part
        cdef ObjectCode code
        cdef bint done
        target = checked_target(target_type)
        codes = self._codes
        if codes is None:
            raise ClosedError("the linker was closed")
        makes_ptx = target is ObjectCodeFormatType.PTX
        arguments = self._arguments
        if makes_ptx and "-lto" not in arguments:
            raise ValueError("PTX is made by link-time optimization: set the option link_time_optimization")
        if makes_ptx and "-ptx" not in arguments:
            arguments += ("-ptx",)
        if not makes_ptx and "-ptx" in arguments:
            raise ValueError("the option ptx is for what becomes PTX: link to 'ptx', or leave it out")
        require_nvjitlink()
        arch = arch_of_device("sm_") if self._arch is None else self._arch
        for option in (f"-arch={arch}", *arguments):
            linking.options.push_back(zero_ended(option, "an option"))
        linking.makes_ptx = makes_ptx
        symbols, signatures = {}, []
        for index, each in enumerate(codes):
            code = each
            part.input = INPUTS[word(code._code_type)]
            part.image = &code._module.image()
            part.name = zero_ended(code._name or f"part {index}", "a name")
            linking.parts.push_back(part)
            symbols.update(code._symbol_mapping)
            signatures.append(code._module.signatures())
        with nogil:
            done = nvjitlink_link(linking)
        if linking.is_forked:
            raise ForkedProcessError(
                f"cannot link {self._name!r}: this process was forked while another thread linked, and nvJitLink may "
                "wait for that one for ever. Fork before, or link in the parent"
            )
        error_log = linking.error_log.decode("utf-8", "replace")
        self._logs = error_log, linking.info_log.decode("utf-8", "replace")
        if not done:
            problem = linking.problem.decode("utf-8", "replace")
            said = f"cannot link {self._name!r} to {target} for {arch}: {problem}\n{error_log}"
            raise LinkerError(said.rstrip(), error_log)
        told = b"" if makes_ptx else b"\n".join(each for each in signatures if tells_types(each))
        return make_object_code(linking.image, told, None, target, self._name, symbols)

    def get_error_log(self):
        """The linker's errors of the last :meth:`link` that ended. Thread safety: atomic."""
        return self._logs[0]

    def get_info_log(self):
        """What else it had to say then: more with the options ``verbose`` and ``time``. Thread safety: atomic."""
        return self._logs[1]

    @classmethod
    def which_backend(cls):
        """``CompilerBackendType.NVJITLINK``. Thread safety: atomic.

        Raises
        ------
        LinkerError
            There is no nvJitLink. ftcuda does not link with the driver.
        """
        require_nvjitlink()
        return CompilerBackendType.NVJITLINK

    @property
    def is_closed(self):
        """Whether :meth:`close` was called. Thread safety: atomic."""
        return self._codes is None

    def close(self):
        """Lets the parts go; a :meth:`link` under way ends as it would. Thread safety: atomic."""
        self._codes = None

    def __repr__(self):
        codes = self._codes
        return f"<Linker {self._name!r}, {'closed' if codes is None else f'{len(codes)} parts'}>"


def checked_target(target_type):
    """What to link to."""
    if not isinstance(target_type, str) or word(target_type).lower() not in TARGETS:
        raise ValueError(f"target_type must be 'cubin' or 'ptx', not {target_type!r}")
    return ObjectCodeFormatType(word(target_type).lower())


def tells_types(signatures):
    """PTX says what kernels take; other images say how large it is."""
    return b".entry" in signatures and b"\0" not in signatures
