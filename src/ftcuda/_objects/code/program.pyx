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
from ftcuda._objects.code.code_handle cimport CodeHandle
from ftcuda._objects.code.kernel cimport Kernel
from ftcuda._objects.device.device_handle cimport DeviceHandle, as_device
from ftcuda._objects.memory.buffer cimport Buffer
from ftcuda._objects.support.public_class cimport stand_above
from ftcuda._objects.support.raising cimport check, release_and_warn, raise_status, refuse_to_make

from cuda.pathfinder import DynamicLibNotFoundError, load_nvidia_dynamic_lib
from ftcuda._objects.code.program_options import ProgramOptions, word
from ftcuda._objects.support.options import checked
from ftcuda._objects.support.texts import zero_ended
from ftcuda.errors import NVRTCError, NotSupportedError
from ftcuda.typing import CompilerBackendType, ObjectCodeFormatType, PCHStatusType, SourceCodeType

ELF, FATBIN = BINARIES = b"\x7fELF", b"\x50\xed\x55\xba"  # how the images begin that are no text
TARGETS = {"ptx": Output.ptx, "cubin": Output.cubin, "ltoir": Output.ltoir}


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
    """CUDA C++ source. Constant; compiled any number of times, from any number of threads.

    Parameters
    ----------
    code : str or bytes
    code_type : SourceCodeType or str
        ``"c++"``.
    options : ProgramOptions or dict, optional
        Read now: what becomes of them later makes no difference.

    Thread safety: atomic.
    """

    def __init__(self, code, code_type, options=None):
        if hasattr(self, "_source"):
            raise TypeError("a program is constant: make another one")
        if not isinstance(code, (str, bytes, bytearray)):
            raise TypeError(f"code must be str or bytes, not {type(code).__name__}")
        if not isinstance(code_type, str) or word(code_type).lower() != SourceCodeType.CXX:
            raise ValueError(f"code_type must be 'c++', not {code_type!r}; load PTX with ObjectCode.from_ptx")
        self._source = zero_ended(code, "code")
        options = checked(options, ProgramOptions)
        self._arguments = tuple(options.as_nvrtc())  # and checks them all
        self._name = word(options.name)
        self._arch = None if options.arch is None else word(options.arch)
        if options.std is None:
            self._arguments += ("--std=c++17",)  # the default of all NVRTCs but those of CUDA 11
        self._makes_header = bool(options.pch or options.create_pch)
        self._pch_status = None

    @property
    def backend(self):
        """Always ``CompilerBackendType.NVRTC``. Thread safety: atomic."""
        return CompilerBackendType.NVRTC

    @property
    def pch_status(self):
        """What became of the precompiled header, a `PCHStatusType`, in the last compilation that ended.

        None if none was asked for by the options ``pch`` or ``create_pch``, before the first compilation, and where
        NVRTC is older than CUDA 12.8.

        Thread safety: atomic.
        """
        return self._pch_status

    def compile(self, target_type=None, name_expressions=(), logs=None):
        """Compiles.

        Parameters
        ----------
        target_type : ObjectCodeFormatType or str, optional
            ``"ptx"``, ``"cubin"`` or, with the option ``link_time_optimization``, ``"ltoir"``. None is what the driver
            takes for the calling thread's current device: a cubin, or PTX if the option ``arch`` is ``compute_<CC>`` or
            the driver takes no cubins, as the simulated driver. The driver is asked once, by offering it one.
        name_expressions : sequence of str
            Names of kernels as C++ writes them, templates instantiated: ``"scale<float>"``. They may be given to
            :meth:`ObjectCode.get_kernel`.
        logs : object with ``write``, optional
            Gets the compiler's messages also after success.

        Returns
        -------
        ObjectCode

        Thread safety: shared. NVRTC compiles one program at a time, detached from the interpreter.

        Raises
        ------
        NVRTCError
            With the compiler's messages. An option that this NVRTC does not know is named in them.
        """
        if isinstance(name_expressions, str):
            raise TypeError("name_expressions must be a sequence of str, not one str")
        target = None
        if target_type is not None:
            if not isinstance(target_type, str) or word(target_type).lower() not in TARGETS:
                raise ValueError(f"target_type must be 'ptx', 'cubin', 'ltoir' or None, not {target_type!r}")
            target = ObjectCodeFormatType(word(target_type).lower())
        require_nvrtc()
        if target is None:
            target = target_of_driver(self._arch)
        return compiled(self, target, tuple(name_expressions), logs)

    def close(self):
        """Does nothing: a program holds no resource. There for cuda.core's sake. Thread safety: atomic."""

    def __repr__(self):
        return f"<Program {self._name!r}, {len(self._source)} bytes>"


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


cdef object compiled(program, target, tuple name_expressions, logs):
    cdef Compilation compilation
    cdef bint done
    arch = program._arch
    if arch is None:
        arch = ("compute_" if target is ObjectCodeFormatType.PTX else "sm_") + as_device(None).arch
    if target is ObjectCodeFormatType.CUBIN and not arch.startswith("sm_"):
        raise ValueError(f"a cubin is for one architecture: option arch must be sm_<CC>, not {arch!r}")
    compilation.source = program._source
    compilation.name = zero_ended(program._name, "option name")
    compilation.output = TARGETS[target]
    compilation.makes_header = program._makes_header
    for option in [f"-arch={arch}", *program._arguments, *(f"--include-path={path}" for path in header_paths())]:
        compilation.options.push_back(zero_ended(os.fsencode(option), "an option"))
    for expression in name_expressions:
        if not isinstance(expression, str):
            raise TypeError(f"a name expression must be str, not {type(expression).__name__}")
        compilation.name_expressions.push_back(zero_ended(expression, "a name expression"))
    with nogil:
        done = nvrtc_compile(compilation)
    program._pch_status = header_outcome(compilation.header_status)
    log = compilation.log.decode("utf-8", "replace")
    if not done:
        problem = compilation.problem.decode("utf-8", "replace")
        raise NVRTCError(f"cannot compile {program._name!r} to {target} for {arch}: {problem}\n{log}".rstrip(), log)
    if logs is not None:
        logs.write(log)
    lowered = [name.decode() for name in compilation.lowered_names]
    mapping = dict(zip(map(word, name_expressions), lowered))
    return make_object_code(compilation.image, compilation.ptx, None, target, program._name, mapping)


cdef object header_outcome(int status):
    """The word for an nvrtcResult about a precompiled header. Source: nvrtc.h 12.8."""
    if status < 0:
        return None
    return {0: PCHStatusType.CREATED, 13: PCHStatusType.NOT_ATTEMPTED}.get(status, PCHStatusType.FAILED)


cdef ObjectCode make_object_code(bytes image, bytes signatures, object path, object code_type, str name,
                                 dict symbol_mapping):
    cdef ObjectCode code = ObjectCode.__new__(ObjectCode)
    code._module = core.Module.make(image, signatures).detach()
    code._code = image if path is None else path
    code._code_type = code_type
    code._name = name
    code._symbol_mapping = symbol_mapping
    return code


def restored(bytes image, bytes signatures, path, str code_type, str name, dict symbol_mapping):
    """Behind the pickling of `ObjectCode`."""
    return make_object_code(image, signatures, path, ObjectCodeFormatType(code_type), name, symbol_mapping)


def name_of(name):
    """Returns the name of something in the code as a str."""
    if isinstance(name, bytes):
        return name.decode()
    if not isinstance(name, str):
        raise TypeError(f"name must be str or bytes, not {type(name).__name__}")
    return word(name)


cdef object load_code(image, code_type, bytes magic, name, symbol_mapping):
    path = None
    if isinstance(image, (str, os.PathLike)):
        path = word(os.fsdecode(image))
        image = Path(path).read_bytes()
    elif isinstance(image, (bytes, bytearray)):
        image = bytes(image)
    else:
        raise TypeError(f"module must be bytes or a path, not {type(image).__name__}")
    if magic and not image.startswith(magic):
        raise ValueError(f"the image is not a {code_type}")
    if not image:
        raise ValueError("the image is empty")
    if code_type is ObjectCodeFormatType.PTX and not image.startswith(BINARIES):
        image = zero_ended(image.rstrip(b"\0"), "PTX")  # which the driver reads as a text
    if not core.is_whole(image):
        raise ValueError(f"the image is cut off: it has {len(image)} bytes, and its headers speak of more")
    name = word(name) if isinstance(name, str) else str(name or "")
    return make_object_code(image, b"", path, code_type, name, dict(symbol_mapping or {}))


cdef class ObjectCode(CodeHandle):
    """Compiled code. Loaded on a device when a kernel of it is first wanted there, by one thread while others wait.

    Made by :meth:`Program.compile` or the ``from_`` methods.
    """

    _made = "object code is made by Program.compile() or ObjectCode.from_ptx(), from_cubin(), from_fatbin()"

    @staticmethod
    def from_ptx(module, *, name="", symbol_mapping=None):
        """Takes PTX text: bytes, or the path of a file. Thread safety: atomic.

        Parameters
        ----------
        module : bytes, str or os.PathLike
            A file is read now. :attr:`code` is its path then.
        name : str
        symbol_mapping : dict
            Names for :meth:`get_kernel` to the names in the code.
        """
        return load_code(module, ObjectCodeFormatType.PTX, b"", name, symbol_mapping)

    @staticmethod
    def from_cubin(module, *, name="", symbol_mapping=None):
        """Takes a cubin; see :meth:`from_ptx`. Thread safety: atomic."""
        return load_code(module, ObjectCodeFormatType.CUBIN, ELF, name, symbol_mapping)

    @staticmethod
    def from_fatbin(module, *, name="", symbol_mapping=None):
        """Takes a fatbin; see :meth:`from_ptx`. Thread safety: atomic."""
        return load_code(module, ObjectCodeFormatType.FATBIN, FATBIN, name, symbol_mapping)

    def get_kernel(self, name):
        """Returns a kernel, loading the code on the calling thread's current device (device 0 if it has none).

        Parameters
        ----------
        name : str or bytes
            As in the code, or a name expression that it was compiled with.

        Returns
        -------
        Kernel

        Thread safety: shared. Loading happens once for each device.

        Raises
        ------
        KeyError
            There is no such kernel; the message lists those there are.
        CUDAError
            The driver refused the code; the message has its log.
        """
        release_and_warn()
        name = name_of(name)
        self._require_loadable()
        return Kernel.of_code(self._module, self, name, self._symbol_mapping.get(name, name))

    def get_global(self, name, *, device=None):
        """Returns a module variable's memory on a device.

        Parameters
        ----------
        name : str or bytes
            As in the code.
        device : Device or int, optional

        Returns
        -------
        Buffer
            It keeps the code loaded.

        Thread safety: shared.
        """
        cdef unsigned long long pointer = 0
        cdef size_t size = 0
        cdef string log
        cdef Status status
        name = name_of(name)
        cdef bytes symbol = zero_ended(self._symbol_mapping.get(name, name), "the name of a variable")
        cdef DeviceHandle wanted = as_device(device)
        cdef Context* context = wanted.context_of()
        self._require_loadable()
        cdef const char* text = symbol
        with nogil:
            status = self._module.global_(context[0], text, pointer, size, log)
        if not status.ok():
            raise_status(status, "find", f"the variable {name!r}")
        return Buffer.from_handle(pointer, size, owner=self)

    def _require_loadable(self):
        if self._code_type is ObjectCodeFormatType.LTOIR:
            raise NotSupportedError(
                f"cannot load {self}: it is for a linker, which ftcuda has not; compile without link_time_optimization"
            )

    @property
    def code(self):
        """The image, or the path of the file that it was read from. Thread safety: atomic."""
        return self._code

    @property
    def name(self):
        """The name given. Thread safety: atomic."""
        return self._name

    @property
    def code_type(self):
        """``"ptx"``, ``"cubin"``, ``"fatbin"`` or ``"ltoir"``, a member of
        `ObjectCodeFormatType`. Thread safety: atomic.
        """
        return self._code_type

    @property
    def symbol_mapping(self):
        """Name expressions and the names they have in the code. Thread safety: atomic."""
        return dict(self._symbol_mapping)

    @property
    def kernel_names(self):
        """Names of the kernels, as far as the image tells. Thread safety: atomic."""
        return [name.decode("utf-8", "replace") for name in core.kernel_names(self._module.image())]

    def __repr__(self):
        return f"<ObjectCode {self._name!r}, {self._code_type}, {self._module.image().size()} bytes>"

    def __reduce__(self):
        """The image goes with it, so that a file need not be there where it is loaded again."""
        path = self._code if isinstance(self._code, str) else None
        image, signatures = self._module.image(), self._module.signatures()
        return restored, (
            image, b"" if signatures == image else signatures, path, word(self._code_type), self._name,
            self._symbol_mapping)


stand_above(ObjectCode, CodeHandle)
refuse_to_make(ObjectCode)
