"""Kernels: their parameters, attributes and occupancy."""

from collections import namedtuple

from libcpp.string cimport string

cimport core.code.kernel as core
cimport core.code.module as modules
from core.device.device cimport Context
from core.sync.reason cimport Status
from core.sync.ref cimport Ref
from ftcuda._objects.code.code_handle cimport CodeHandle
from ftcuda._objects.device.device_handle cimport as_device
from ftcuda._objects.launch.bound_launch cimport bind
from ftcuda._objects.launch.launch_config cimport LaunchConfig
from ftcuda._objects.stream.stream cimport Stream, as_stream
from ftcuda._objects.support.public_class cimport stand_above
from ftcuda._objects.support.raising cimport check, raise_status, refuse_to_make

from ftcuda._objects.support.handles import checked_handle
from ftcuda._objects.support.options import integer
from ftcuda._objects.support.texts import zero_ended
from ftcuda.errors import CUDAError

# `module`: there is no frame of this one from which namedtuple could tell it, and without it they cannot be pickled.
ParamInfo = namedtuple("ParamInfo", ("offset", "size"), module=__name__)
MaxPotentialBlockSizeOccupancyResult = namedtuple(
    "MaxPotentialBlockSizeOccupancyResult", ("min_grid_size", "max_block_size"), module=__name__)


cdef class Kernel:
    """A kernel, callable on every device its code can be loaded on. Made by :meth:`ObjectCode.get_kernel`. Constant.

    Kernels of one function compare and hash equal. The function is that of the device on which the code was loaded
    first.
    """

    @staticmethod
    cdef Kernel made_of(core.Kernel* made, str name, object code):
        cdef Kernel kernel = Kernel.__new__(Kernel)
        kernel._name = name
        kernel._code = code
        kernel.adopt(made)
        return kernel

    @staticmethod
    cdef Kernel of_code(modules.Module* module, object code, str name, str symbol):
        """The kernel `symbol` of `code`, whose module that is."""
        cdef Ref[core.Kernel] made
        cdef string log
        cdef Status status
        cdef string mangled = zero_ended(symbol, "the name of a kernel")
        cdef Context* context = as_device(None).context_of()
        with nogil:
            status = core.Kernel.get(module[0], mangled, context[0], made, log)
        if status.ok():
            return Kernel.made_of(made.detach(), name, code)
        if not log.empty():
            try:
                raise_status(status, "load", code)
            except CUDAError as error:
                words = log.decode("utf-8", "replace").strip()
                raise type(error)(f"{error}\n{words}", error.code, error.name, error.entry_point) from None
        try:
            raise_status(status, "find", f"kernel {name!r} in {code}")
        except KeyError as error:
            raise KeyError(f"{error.args[0]}; it has {code.kernel_names}") from None

    @staticmethod
    def from_handle(handle, mod=None):
        """Wraps a function that other code loaded on the calling thread's current device.

        Parameters
        ----------
        handle : int or CUfunction
        mod : ObjectCode, optional
            The code that the function is in, if it is ftcuda's: kept loaded as long as the kernel is there.

        Thread safety: atomic.
        """
        cdef Ref[core.Kernel] made
        cdef Status status
        cdef size_t function = checked_handle(handle, "handle")
        if function == 0:
            raise ValueError("a kernel handle must not be 0")
        if mod is not None and not isinstance(mod, CodeHandle):
            raise TypeError(
                f"mod must be the ObjectCode that the kernel is in, or None, not {type(mod).__name__}; what another "
                "library loaded has to be kept by who has it"
            )
        cdef Context* context = as_device(None).context_of()
        with nogil:
            status = core.Kernel.wrap(context[0], <core.CUfunction>function, made)
        if not status.ok():
            raise_status(status, "wrap", f"the kernel handle {function:#x}")
        return Kernel.made_of(made.detach(), f"{function:#x}", mod)

    cdef Context* context_on(self, object device) except NULL:
        return as_device(device).context_of()

    @property
    def name(self):
        """The name, as it was asked for. Thread safety: atomic."""
        return self._name

    @property
    def handle(self):
        """The ``CUfunction`` on the calling thread's current device, as an integer. Thread safety: atomic."""
        cdef core.CUfunction function = NULL
        cdef Status status
        cdef Context* context = self.context_on(None)
        with nogil:
            status = self._kernel.function(context[0], function)
        check(status, "load", self)
        return <size_t>function

    @property
    def num_arguments(self):
        """Number of parameters. Thread safety: atomic."""
        self.require_layout()
        return self._slot_count

    @property
    def arguments_info(self):
        """``(offset, size)`` in bytes of each parameter; offset None where only the driver could tell.

        Thread safety: atomic.
        """
        self.require_layout()
        known = self._kernel.layout().offsets_known
        return [
            ParamInfo(self._kernel.layout().parameters[index].offset if known else None, self._slots[index].size)
            for index in range(self._slot_count)
        ]

    def bind(self, LaunchConfig config not None, *kernel_args):
        """Returns a launch whose arguments are checked and packed now, once.

        Parameters
        ----------
        config : LaunchConfig
        *kernel_args
            As for :func:`launch`, but of arrays: views, since the stream of a launch is not known yet, in whose order
            another library's array would be taken. Buffers and views are kept until they are replaced or the bound
            launch is gone.

        Returns
        -------
        BoundLaunch

        Thread safety: atomic.

        Raises
        ------
        TypeError, ValueError, OverflowError
            An argument does not fit its parameter.
        """
        return bind(self, config, kernel_args)

    @property
    def attributes(self):
        """The kernel's attributes on the current device; ``attributes[device]`` on another. Thread safety: atomic."""
        return KernelAttributes(self, None)

    @property
    def occupancy(self):
        """Questions about occupancy, answered for the current device. Thread safety: atomic."""
        return KernelOccupancy(self)

    def __eq__(self, other):
        if not isinstance(other, Kernel):
            return NotImplemented
        return self._kernel.identity() == (<Kernel>other)._kernel.identity()

    def __hash__(self):
        return hash((Kernel, <size_t>self._kernel.identity()))

    def __repr__(self):
        return f"<Kernel {self._name}>"


stand_above(Kernel, KernelHandle)
refuse_to_make(Kernel)


# CUfunction_attribute, cuda.h 13.5.
KERNEL_ATTRIBUTES = {
    "max_threads_per_block": 0,
    "shared_size_bytes": 1,
    "const_size_bytes": 2,
    "local_size_bytes": 3,
    "num_regs": 4,
    "ptx_version": 5,
    "binary_version": 6,
    "cache_mode_ca": 7,
    "max_dynamic_shared_size_bytes": 8,
    "preferred_shared_memory_carveout": 9,
    "cluster_size_must_be_set": 10,
    "required_cluster_width": 11,
    "required_cluster_height": 12,
    "required_cluster_depth": 13,
    "non_portable_cluster_size_allowed": 14,
    "cluster_scheduling_policy_preference": 15,
}
FLAGS = frozenset({"cache_mode_ca", "cluster_size_must_be_set", "non_portable_cluster_size_allowed"})
SETTABLE = frozenset({"max_dynamic_shared_size_bytes", "preferred_shared_memory_carveout",
                      "non_portable_cluster_size_allowed"})


class KernelAttributes:
    """A kernel's attributes by cuda.core's names, on the current device or on the one in brackets.

    ``max_dynamic_shared_size_bytes``, ``preferred_shared_memory_carveout`` and ``non_portable_cluster_size_allowed``
    may be set; the last writer wins. The first one is only ever raised, since launches in other threads may rely on it,
    and launches raise it by themselves where they need it.
    """

    __slots__ = ("_device", "_kernel")

    def __init__(self, kernel, device):
        object.__setattr__(self, "_kernel", kernel)
        object.__setattr__(self, "_device", device)

    def __getitem__(self, device):
        return KernelAttributes(self._kernel, as_device(device))

    def __getattr__(self, name):
        if name not in KERNEL_ATTRIBUTES:
            raise AttributeError(f"kernels have no attribute {name!r}")
        value = _get_attribute(self._kernel, self._device, KERNEL_ATTRIBUTES[name])
        return bool(value) if name in FLAGS else value

    def __setattr__(self, name, value):
        if name not in SETTABLE:
            raise AttributeError(f"attribute {name!r} of a kernel cannot be set")
        _set_attribute(self._kernel, self._device, KERNEL_ATTRIBUTES[name], integer(value, name))

    def __dir__(self):
        return sorted(KERNEL_ATTRIBUTES)


def _get_attribute(Kernel kernel not None, device, int attribute):
    cdef Status status
    cdef int value = 0
    cdef Context* context = kernel.context_on(device)
    with nogil:
        status = kernel._kernel.get_attribute(context[0], attribute, value)
    check(status, "ask for an attribute of", kernel)
    return value


def _set_attribute(Kernel kernel not None, device, int attribute, int value):
    cdef Status status
    cdef Context* context = kernel.context_on(device)
    with nogil:
        status = kernel._kernel.set_attribute(context[0], attribute, value)
    check(status, "set an attribute of", kernel)


cdef class KernelOccupancy:
    """How many blocks of a kernel fit on the current device at once. Every answer is the driver's."""

    cdef Kernel _kernel

    def __cinit__(self, Kernel kernel not None):
        self._kernel = kernel

    def max_active_blocks_per_multiprocessor(self, block_size, dynamic_shared_memory_size):
        """Returns the blocks that fit on one multiprocessor. Thread safety: atomic.

        Parameters
        ----------
        block_size : int
            Threads per block.
        dynamic_shared_memory_size : int
            Bytes per block.
        """
        cdef int threads = integer(block_size, "block_size")
        cdef size_t shared = integer(dynamic_shared_memory_size, "dynamic_shared_memory_size")
        cdef int blocks = 0
        cdef Status status
        cdef Context* context = self._kernel.context_on(None)
        with nogil:
            status = self._kernel._kernel.max_active_blocks(context[0], threads, shared, blocks)
        check(status, "compute the occupancy of", self._kernel)
        return blocks

    def max_potential_block_size(self, dynamic_shared_memory_needed, block_size_limit):
        """Returns ``(min_grid_size, max_block_size)`` for the highest occupancy. Thread safety: atomic.

        Parameters
        ----------
        dynamic_shared_memory_needed : int
            Bytes per block.
        block_size_limit : int
            0 for the device's own limit.
        """
        cdef size_t shared = integer(dynamic_shared_memory_needed, "dynamic_shared_memory_needed")
        cdef int limit = integer(block_size_limit, "block_size_limit")
        cdef int grid = 0, block = 0
        cdef Status status
        cdef Context* context = self._kernel.context_on(None)
        with nogil:
            status = self._kernel._kernel.max_potential_block_size(context[0], shared, limit, grid, block)
        check(status, "compute the occupancy of", self._kernel)
        return MaxPotentialBlockSizeOccupancyResult(grid, block)

    def available_dynamic_shared_memory_per_block(self, num_blocks_per_multiprocessor, block_size):
        """Returns the bytes of dynamic shared memory a block may have. Thread safety: atomic.

        Parameters
        ----------
        num_blocks_per_multiprocessor : int
        block_size : int
        """
        cdef int blocks = integer(num_blocks_per_multiprocessor, "num_blocks_per_multiprocessor")
        cdef int threads = integer(block_size, "block_size")
        cdef size_t available = 0
        cdef Status status
        cdef Context* context = self._kernel.context_on(None)
        with nogil:
            status = self._kernel._kernel.available_dynamic_shared(context[0], blocks, threads, available)
        check(status, "compute the occupancy of", self._kernel)
        return available

    def max_potential_cluster_size(self, LaunchConfig config not None, *, stream):
        """Returns the largest cluster that a launch may ask for. Thread safety: atomic.

        Parameters
        ----------
        config : LaunchConfig
        stream : Stream
        """
        cdef int size = 0
        cdef Status status
        cdef Stream wanted = as_stream(stream)
        cdef Context* context = &wanted.on(NULL).context()
        with nogil:
            status = self._kernel._kernel.max_potential_cluster_size(context[0], config._shape.config(), size)
        check(status, "compute the occupancy of", self._kernel)
        return size

    def max_active_clusters(self, LaunchConfig config not None, *, stream):
        """Returns how many clusters of a launch fit on the device at once. Thread safety: atomic.

        Parameters
        ----------
        config : LaunchConfig
        stream : Stream
        """
        cdef int clusters = 0
        cdef Status status
        cdef Stream wanted = as_stream(stream)
        cdef Context* context = &wanted.on(NULL).context()
        with nogil:
            status = self._kernel._kernel.max_active_clusters(context[0], config._shape.config(), clusters)
        check(status, "compute the occupancy of", self._kernel)
        return clusters
