"""Compiled code."""

import os
from pathlib import Path

from libcpp.string cimport string

cimport core.code.module as core
from core.device.device cimport Context
from core.sync.reason cimport Status
from ftcuda._objects.code.code_handle cimport CodeHandle
from ftcuda._objects.code.kernel cimport Kernel
from ftcuda._objects.device.device_handle cimport DeviceHandle, as_device
from ftcuda._objects.memory.buffer cimport Buffer
from ftcuda._objects.support.public_class cimport stand_above
from ftcuda._objects.support.raising cimport raise_status, refuse_to_make, release_and_warn

from ftcuda._objects.code.program_options import word
from ftcuda._objects.support.texts import zero_ended
from ftcuda.errors import NotSupportedError
from ftcuda.typing import ObjectCodeFormatType

ELF, FATBIN = BINARIES = b"\x7fELF", b"\x50\xed\x55\xba"  # how the images begin that are no text
LTOIR, LIBRARY = b"\xedCN\x7f", b"!<arch>\n"
FOR_LINKERS = (ObjectCodeFormatType.LTOIR, ObjectCodeFormatType.OBJECT, ObjectCodeFormatType.LIBRARY)


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


def name_of(name, what="name"):
    """Returns the name of something in the code as a str."""
    if isinstance(name, bytes):
        return name.decode()
    if not isinstance(name, str):
        raise TypeError(f"{what} must be str or bytes, not {type(name).__name__}")
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

    _made = "object code is made by Program.compile(), Linker.link() or ObjectCode.from_ptx(), from_cubin(), ..."

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

    @staticmethod
    def from_ltoir(module, *, name="", symbol_mapping=None):
        """Takes LTO IR, for a :class:`Linker`; see :meth:`from_ptx`. Thread safety: atomic."""
        return load_code(module, ObjectCodeFormatType.LTOIR, LTOIR, name, symbol_mapping)

    @staticmethod
    def from_object(module, *, name="", symbol_mapping=None):
        """Takes a host's object file with device code, for a :class:`Linker`; see :meth:`from_ptx`.

        Thread safety: atomic.
        """
        return load_code(module, ObjectCodeFormatType.OBJECT, ELF, name, symbol_mapping)

    @staticmethod
    def from_library(module, *, name="", symbol_mapping=None):
        """Takes a static library of such objects, for a :class:`Linker`; see :meth:`from_ptx`.

        Thread safety: atomic.
        """
        return load_code(module, ObjectCodeFormatType.LIBRARY, LIBRARY, name, symbol_mapping)

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
        if self._code_type in FOR_LINKERS:
            raise NotSupportedError(f"cannot load {self}: it is for a Linker, whose link() makes what can be loaded")

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
        """``"ptx"``, ``"cubin"``, ``"fatbin"``, ``"ltoir"``, ``"object"`` or ``"library"``, a member of
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
