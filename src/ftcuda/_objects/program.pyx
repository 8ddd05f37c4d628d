"""Programs and what they compile to."""

import os
from importlib import metadata
from pathlib import Path

from libcpp.string cimport string
from libcpp.vector cimport vector

cimport core.module as core
from core.device cimport Context
from core.nvrtc cimport Compilation, compile as nvrtc_compile, load_nvrtc, nvrtc_loaded, nvrtc_path
from core.nvrtc cimport nvrtc_version as core_nvrtc_version
from core.status cimport Status
from ftcuda._objects.device cimport Device, as_device
from ftcuda._objects.raising cimport deliver_mail, raise_status, refuse_to_make

from cuda.pathfinder import DynamicLibNotFoundError, load_nvidia_dynamic_lib
from ftcuda._objects.options import checked
from ftcuda._objects.program_options import ProgramOptions
from ftcuda.errors import NVRTCError


def find_nvrtc():
    """Returns where NVRTC may be, best first: FTCUDA_NVRTC, then what cuda-pathfinder finds, then the wheel of CUDA 11."""
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
        paths.push_back(os.fsencode(path))
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
    libcxx = [toolkit / "include" / "cccl", wheels / "cuda_cccl" / "include"]  # cooperative_groups.h needs its nv/target
    return [
        *(str(path) for path in beside if (path / "cuda_fp16.h").exists()),
        *(str(path) for path in libcxx if (path / "nv" / "target").exists()),
    ]


class Program:
    """CUDA C++ source. Constant; compiled any number of times, from any number of threads.

    Parameters
    ----------
    code : str or bytes
    code_type : {"c++"}
    options : ProgramOptions or dict, optional

    Thread safety: atomic.
    """

    def __init__(self, code, code_type, options=None):
        if not isinstance(code, (str, bytes, bytearray)):
            raise TypeError(f"code must be str or bytes, not {type(code).__name__}")
        if str(code_type).lower() != "c++":
            raise ValueError(f"code_type must be 'c++', not {code_type!r}; load PTX with ObjectCode.from_ptx")
        self._source = code.encode() if isinstance(code, str) else bytes(code)
        if b"\0" in self._source:
            raise ValueError("code must not contain a NUL character")
        self._options = checked(options, ProgramOptions)

    @property
    def backend(self):
        """Always ``"NVRTC"``. Thread safety: atomic."""
        return "NVRTC"

    def compile(self, target_type, name_expressions=(), logs=None):
        """Compiles.

        Parameters
        ----------
        target_type : {"ptx", "cubin"}
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
            With the compiler's messages.
        """
        if target_type not in ("ptx", "cubin"):
            raise ValueError(f"target_type must be 'ptx' or 'cubin', not {target_type!r}")
        if isinstance(name_expressions, str):
            raise TypeError("name_expressions must be a sequence of str, not one str")
        require_nvrtc()
        return compiled(self._source, self._options, target_type, tuple(name_expressions), logs)

    def close(self):
        """Does nothing: a program holds no resource. There for cuda.core's sake. Thread safety: atomic."""

    def __repr__(self):
        return f"<Program {self._options.name!r}, {len(self._source)} bytes>"


cdef object compiled(bytes source, options, str target_type, tuple name_expressions, logs):
    cdef Compilation compilation
    cdef bint done
    arch = options.arch
    if arch is None:
        arch = ("sm_" if target_type == "cubin" else "compute_") + Device().arch
    if target_type == "cubin" and not arch.startswith("sm_"):
        raise ValueError(f"a cubin is for one architecture: option arch must be sm_<CC>, not {arch!r}")
    compilation.source = source
    compilation.name = options.name.encode()
    compilation.cubin = target_type == "cubin"
    for option in [f"--gpu-architecture={arch}", *options.as_nvrtc(), *(f"--include-path={path}" for path in header_paths())]:
        compilation.options.push_back(os.fsencode(option))
    for expression in name_expressions:
        if not isinstance(expression, str):
            raise TypeError(f"a name expression must be str, not {type(expression).__name__}")
        compilation.name_expressions.push_back(expression.encode())
    with nogil:
        done = nvrtc_compile(compilation)
    log = compilation.log.decode("utf-8", "replace")
    if not done:
        problem = compilation.problem.decode("utf-8", "replace")
        raise NVRTCError(f"cannot compile {options.name!r} for {arch}: {problem}\n{log}".rstrip(), log)
    if logs is not None:
        logs.write(log)
    lowered = [name.decode() for name in compilation.lowered_names]
    mapping = dict(zip(name_expressions, lowered))
    return make_object_code(compilation.image, compilation.ptx, target_type, options.name, mapping)


cdef ObjectCode make_object_code(bytes image, bytes signatures, str code_type, str name, dict symbol_mapping):
    cdef ObjectCode code = ObjectCode.__new__(ObjectCode)
    code._module = core.Module.make(image, signatures).detach()
    code._code = image
    code._code_type = code_type
    code._name = name
    code._symbol_mapping = symbol_mapping
    return code


cdef object load_code(image, str code_type, bytes magic, name, symbol_mapping):
    if isinstance(image, (str, os.PathLike)):
        image = Path(image).read_bytes()
    elif isinstance(image, (bytes, bytearray)):
        image = bytes(image)
    else:
        raise TypeError(f"module must be bytes or a path, not {type(image).__name__}")
    if magic and not image.startswith(magic):
        raise ValueError(f"the image is not a {code_type}")
    if not image:
        raise ValueError("the image is empty")
    if not core.is_whole(image):
        raise ValueError(f"the image is cut off: it has {len(image)} bytes, and its headers speak of more")
    return make_object_code(image, b"", code_type, str(name or ""), dict(symbol_mapping or {}))


cdef class ObjectCode:
    """Compiled code. Loaded on a device when a kernel of it is first wanted there, by one thread while others wait.

    Made by :meth:`Program.compile` or the ``from_`` methods.
    """

    _made = "object code is made by Program.compile() or ObjectCode.from_ptx(), from_cubin(), from_fatbin()"

    def __dealloc__(self):
        if self._module != NULL:
            with nogil:
                self._module.release()

    @staticmethod
    def from_ptx(module, *, name="", symbol_mapping=None):
        """Takes PTX text: bytes, or the path of a file. Thread safety: atomic.

        Parameters
        ----------
        module : bytes, str or os.PathLike
        name : str
        symbol_mapping : dict
            Names for :meth:`get_kernel` to the names in the code.
        """
        return load_code(module, "ptx", b"", name, symbol_mapping)

    @staticmethod
    def from_cubin(module, *, name="", symbol_mapping=None):
        """Takes a cubin; see :meth:`from_ptx`. Thread safety: atomic."""
        return load_code(module, "cubin", b"\x7fELF", name, symbol_mapping)

    @staticmethod
    def from_fatbin(module, *, name="", symbol_mapping=None):
        """Takes a fatbin; see :meth:`from_ptx`. Thread safety: atomic."""
        return load_code(module, "fatbin", b"\x50\xed\x55\xba", name, symbol_mapping)

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
        deliver_mail()
        if isinstance(name, bytes):
            name = name.decode()
        elif not isinstance(name, str):
            raise TypeError(f"name must be str or bytes, not {type(name).__name__}")
        return _kernel.get_kernel(self, name, self._symbol_mapping.get(name, name))

    def get_global(self, name, *, device=None):
        """Returns a module variable's memory on a device.

        Parameters
        ----------
        name : str
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
        cdef Device wanted = as_device(device)
        cdef Context* context = wanted.context_of()
        cdef bytes symbol = self._symbol_mapping.get(name, name).encode()
        cdef const char* text = symbol
        with nogil:
            status = self._module.global_(context[0], text, pointer, size, log)
        if not status.ok():
            raise_status(status, "find", f"the variable {name!r}")
        return _buffer.Buffer.from_handle(pointer, size, owner=self)

    @property
    def code(self):
        """The image. Thread safety: atomic."""
        return self._code

    @property
    def name(self):
        """The name given. Thread safety: atomic."""
        return self._name

    @property
    def code_type(self):
        """``"ptx"``, ``"cubin"`` or ``"fatbin"``. Thread safety: atomic."""
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
        return f"<ObjectCode {self._name!r}, {self._code_type}, {len(self._code)} bytes>"


refuse_to_make(ObjectCode)


# At the end: kernels need object code, which needs kernels only when it is asked for one.
import ftcuda._objects.buffer as _buffer  # noqa: E402
import ftcuda._objects.kernel as _kernel  # noqa: E402
