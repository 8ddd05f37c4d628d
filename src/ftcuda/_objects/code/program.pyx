"""Programs and what they compile to."""

import os
from importlib import metadata
from pathlib import Path

from libcpp cimport bool as c_bool
from libcpp.string cimport string
from libcpp.vector cimport vector

cimport core.code.module as core
from core.device.device cimport Context
from core.driver.nvrtc cimport Compilation, Output, compile as nvrtc_compile, load_nvrtc, nvrtc_loaded, nvrtc_path
from core.driver.nvrtc cimport nvrtc_version as core_nvrtc_version
from core.sync.reason cimport Status
from ftcuda._objects.code.object_code cimport make_object_code
from ftcuda._objects.device.device_handle cimport DeviceHandle, as_device
from ftcuda._objects.support.raising cimport check

from cuda.pathfinder import DynamicLibNotFoundError, load_nvidia_dynamic_lib
from ftcuda._objects.code.cached_program import through_cache
from ftcuda._objects.code.linker import Linker, nvjitlink_version
from ftcuda._objects.code.linker_options import of_program
from ftcuda._objects.code.object_code import ObjectCode, name_of
from ftcuda._objects.code.program_key import key_of
from ftcuda._objects.code.program_options import ProgramOptions, arch_of_device, word
from ftcuda._objects.support.options import checked
from ftcuda._objects.support.texts import zero_ended
from ftcuda.errors import ForkedProcessError, NVRTCError
from ftcuda.typing import CompilerBackendType, ObjectCodeFormatType, PCHStatusType, SourceCodeType

LANGUAGES = SourceCodeType.CXX, SourceCodeType.PTX
TARGETS = {"ptx": Output.ptx, "cubin": Output.cubin, "ltoir": Output.ltoir}

KEPT = set()  # options that NVRTC keeps on for all programs after the first one, as 13.5 does with this one


def find_nvrtc():
    """Returns where NVRTC may be, best first: FTCUDA_NVRTC, then what cuda-pathfinder finds, then the wheel of CUDA 11.
    """
    if path := os.environ.get("FTCUDA_NVRTC"):
        return [path]
    paths = []
    try:
        paths.append(load_nvidia_dynamic_lib("nvrtc").abs_path)
    except DynamicLibNotFoundError:
        pass
    try:
        files = metadata.files("nvidia-cuda-nvrtc-cu11") or []  # cuda-pathfinder knows CUDA 12 and newer
    except metadata.PackageNotFoundError:
        files = []
    paths += [str(file.locate()) for file in files if file.name in ("libnvrtc.so.11.2", "nvrtc64_112_0.dll")]
    return paths


cdef int require_nvrtc() except -1:
    cdef vector[string] paths
    cdef string problem
    cdef bint found
    if nvrtc_loaded():
        return 0
    for path in find_nvrtc():
        paths.push_back(zero_ended(os.fsencode(path), "a path of NVRTC"))
    with nogil:
        found = load_nvrtc(paths, problem)
    if not found:
        raise NVRTCError(
            "cannot compile CUDA C++: NVRTC was not found"
            + (f" ({problem.decode('utf-8', 'replace')})" if not problem.empty() else "")
            + "; install ftcuda[cu12] or ftcuda[cu13], or set FTCUDA_NVRTC to the library's path"
        )
    return 0


def nvrtc_version():
    """Returns NVRTC's ``(major, minor)`` version, loading it if this is its first use. Thread safety: atomic."""
    require_nvrtc()
    return core_nvrtc_version().first, core_nvrtc_version().second


def header_paths():
    """Folders of CUDA headers beside NVRTC, where a toolkit or the wheels of the same CUDA version have put them."""
    library = Path(os.fsdecode(nvrtc_path()))
    toolkit, wheels = library.parent.parent, library.parent.parent.parent
    beside = [toolkit / "include", wheels / "cuda_runtime" / "include"]
    libcxx = [toolkit / "include" / "cccl",
              wheels / "cuda_cccl" / "include"]  # cooperative_groups.h needs its nv/target
    return [
        *(str(path) for path in beside if (path / "cuda_fp16.h").exists()),
        *(str(path) for path in libcxx if (path / "nv" / "target").exists()),
    ]


class Program:
    """CUDA C++ source, or PTX. Constant; compiled any number of times, from any number of threads.

    Parameters
    ----------
    code : str or bytes
    code_type : SourceCodeType or str
        ``"c++"``; or ``"ptx"``, of which nvJitLink makes a cubin.
    options : ProgramOptions or dict, optional
        Read now: what becomes of them later makes no difference.

    Thread safety: atomic.
    """

    def __init__(self, code, code_type, options=None):
        if hasattr(self, "_source"):
            raise TypeError("a program is constant: make another one")
        if not isinstance(code, (str, bytes, bytearray)):
            raise TypeError(f"code must be str or bytes, not {type(code).__name__}")
        if not isinstance(code_type, str) or word(code_type).lower() not in LANGUAGES:
            raise ValueError(f"code_type must be 'c++' or 'ptx', not {code_type!r}")
        options = checked(options, ProgramOptions)
        arguments = tuple(options.as_nvrtc())  # and checks them all
        self._linker_options = None
        if word(code_type).lower() == SourceCodeType.PTX:
            self._linker_options = of_program(options)
            arguments = tuple(self._linker_options.as_nvjitlink())
        elif options.std is None:
            arguments += ("--std=c++17",)  # the default of all NVRTCs but those of CUDA 11
        self._arguments = arguments
        self._name = word(options.name)
        self._arch = None if options.arch is None else word(options.arch)
        self._makes_header = bool(options.pch or options.create_pch)
        self._pch_status = None
        self._source = zero_ended(code, "code")

    @property
    def backend(self):
        """``CompilerBackendType.NVRTC``, or ``NVJITLINK`` for PTX. Thread safety: atomic."""
        return CompilerBackendType.NVRTC if self._linker_options is None else CompilerBackendType.NVJITLINK

    @property
    def pch_status(self):
        """What became of the precompiled header, a `PCHStatusType`, in the last compilation that ended.

        None if none was asked for by the options ``pch`` or ``create_pch``, before the first compilation, and where
        NVRTC is older than CUDA 12.8.

        Thread safety: atomic.
        """
        return self._pch_status

    def compile(self, target_type=None, name_expressions=(), logs=None, *, cache=None):
        """Compiles.

        Parameters
        ----------
        target_type : ObjectCodeFormatType or str, optional
            ``"ptx"``, ``"cubin"`` or, with the option ``link_time_optimization``, ``"ltoir"``. None is what the driver
            takes for the calling thread's current device: a cubin, or PTX if the option ``arch`` is ``compute_<CC>`` or
            the driver takes no cubins, as the simulated driver. The driver is asked once, by offering it one. PTX
            becomes a cubin, or with None stays what it is.
        name_expressions : sequence of str or bytes
            Names of kernels as C++ writes them, templates instantiated: ``"scale<float>"``. They may be given to
            :meth:`ObjectCode.get_kernel`. PTX has none.
        logs : object with ``write``, optional
            Gets the compiler's messages also after success; nothing of a program that is found in the cache.
        cache : ProgramCacheResource, optional
            Where to look for what the program becomes, and where to keep it. Threads that miss the same program compile
            it once, and so do processes with one :class:`FileStreamProgramCache`. A cache that cannot keep it is a
            `CUDAWarning`.

        Returns
        -------
        ObjectCode

        Thread safety: shared. NVRTC compiles one program at a time, detached from the interpreter.

        Raises
        ------
        NVRTCError
            With the compiler's messages. An option that this NVRTC does not know is named in them.
        ForkedProcessError
            The process was forked while another thread compiled.
        LinkerError
            PTX did not become a cubin.
        ValueError
            PTX is to become what it cannot. With a cache: for what :func:`make_program_cache_key` makes no key of.
        """
        names = checked_names(name_expressions)
        target = None if target_type is None else checked_target(target_type)
        if target is None or self._linker_options is None:
            require_nvrtc()
        if target is None:
            target = target_of_driver(self._arch)
            if target is ObjectCodeFormatType.PTX and self._linker_options is not None:
                return ObjectCode.from_ptx(self._source, name=self._name)
        compile_it = compiled if self._linker_options is None else assembled
        if cache is None:
            return compile_it(self, target, names, logs)

        def restore(image, signatures, mapping):
            return make_object_code(image, signatures, None, target, self._name, mapping)

        def make():
            code = compile_it(self, target, names, logs)
            return code, cache_key(self, target, names, None) == key

        key = cache_key(self, target, names, None)
        is_plain = target is ObjectCodeFormatType.PTX and not names
        return through_cache(cache, key, is_plain, make, restore)

    def close(self):
        """Does nothing: a program holds no resource. There for cuda.core's sake. Thread safety: atomic."""

    def __repr__(self):
        return f"<Program {self._name!r}, {len(self._source)} bytes>"


def checked_names(name_expressions):
    """Name expressions."""
    if isinstance(name_expressions, (str, bytes)):
        raise TypeError(f"name_expressions must be a sequence of str, not one {type(name_expressions).__name__}")
    return tuple(name_of(expression, "a name expression") for expression in name_expressions)


def checked_target(target_type):
    """What to compile to."""
    if not isinstance(target_type, str) or word(target_type).lower() not in TARGETS:
        raise ValueError(f"target_type must be 'ptx', 'cubin', 'ltoir' or None, not {target_type!r}")
    return ObjectCodeFormatType(word(target_type).lower())


def cache_key(program, target_type, names, extra_digest):
    """The key of what a program becomes, in a cache."""
    target = checked_target(target_type)
    names = checked_names(names)
    arch = arch_of(program, target)
    if program._linker_options is not None:  # it reads the source and nothing else
        return key_of(program, target, arch, names, nvjitlink_version(), (), extra_digest or b"", ())
    return key_of(program, target, arch, names, nvrtc_version(), header_paths(), extra_digest, KEPT)


def arch_of(program, target):
    """The architecture: the option, or that of the calling thread's current device."""
    if program._arch is not None:
        return program._arch
    return arch_of_device("compute_" if target is ObjectCodeFormatType.PTX else "sm_")


cdef object target_of_driver(arch):
    """What a program is compiled to for the driver and the calling thread's current device."""
    cdef DeviceHandle device
    cdef Context* context
    cdef Compilation probe
    cdef Status status
    cdef bint taken
    cdef c_bool known = False, is_taken = False
    if arch is not None and not arch.startswith("sm_"):
        return ObjectCodeFormatType.PTX  # a cubin is for one architecture
    device = as_device(None)
    context = device.context_of()
    taken = core.Module.accepts_cubins(context[0], known)
    if not known:
        probe.source = b'extern "C" __global__ void ftcuda_probe() {}'
        probe.name = b"ftcuda_probe"
        probe.output = Output.cubin
        probe.options.push_back(zero_ended(f"-arch=sm_{device.arch}", "option arch"))
        with nogil:
            taken = nvrtc_compile(probe)
        if not taken:
            # NVRTC does not know the device, which compiling the program itself will say.
            return ObjectCodeFormatType.CUBIN
        with nogil:
            status = core.Module.offer_cubin(context[0], probe.image, is_taken)
        check(status, "ask the driver whether it takes cubins for", device)
        taken = is_taken
    return ObjectCodeFormatType.CUBIN if taken else ObjectCodeFormatType.PTX


def assembled(program, target, names, logs):
    """What a program of PTX becomes."""
    if target is not ObjectCodeFormatType.CUBIN:
        raise ValueError(f"PTX becomes a cubin, not {target!r}: for what it is, there is ObjectCode.from_ptx")
    if names:
        raise ValueError("name_expressions are names of C++: PTX has the names of its kernels")
    linker = Linker(ObjectCode.from_ptx(program._source, name=program._name), options=program._linker_options)
    code = linker.link(target)
    if logs is not None:
        logs.write(linker.get_info_log())
    return code


def compiled(program, target, tuple name_expressions, logs):
    cdef Compilation compilation
    cdef bint done
    arch = arch_of(program, target)
    if target is ObjectCodeFormatType.CUBIN and not arch.startswith("sm_"):
        raise ValueError(f"a cubin is for one architecture: option arch must be sm_<CC>, not {arch!r}")
    compilation.source = program._source
    compilation.name = zero_ended(program._name, "option name")
    compilation.output = TARGETS[target]
    compilation.makes_header = program._makes_header
    for option in [f"-arch={arch}", *program._arguments, *(f"--include-path={path}" for path in header_paths())]:
        compilation.options.push_back(zero_ended(os.fsencode(option), "an option"))
    for expression in name_expressions:
        compilation.name_expressions.push_back(zero_ended(expression, "a name expression"))
    if "--restrict" in program._arguments:
        KEPT.add("--restrict")
    with nogil:
        done = nvrtc_compile(compilation)
    if compilation.is_forked:
        raise ForkedProcessError(
            f"cannot compile {program._name!r}: this process was forked while another thread compiled, and NVRTC waits "
            "for that one for ever. Fork before, or compile in the parent"
        )
    program._pch_status = header_outcome(compilation.header_status)
    log = compilation.log.decode("utf-8", "replace")
    if not done:
        problem = compilation.problem.decode("utf-8", "replace")
        raise NVRTCError(f"cannot compile {program._name!r} to {target} for {arch}: {problem}\n{log}".rstrip(), log)
    if logs is not None:
        logs.write(log)
    lowered = [name.decode() for name in compilation.lowered_names]
    mapping = dict(zip(name_expressions, lowered))
    return make_object_code(compilation.image, compilation.ptx, None, target, program._name, mapping)


cdef object header_outcome(int status):
    """The word for an nvrtcResult about a precompiled header. Source: nvrtc.h 12.8."""
    if status < 0:
        return None
    return {0: PCHStatusType.CREATED, 13: PCHStatusType.NOT_ATTEMPTED}.get(status, PCHStatusType.FAILED)
