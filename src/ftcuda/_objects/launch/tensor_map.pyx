"""Tensor maps."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.string cimport memcpy

cimport core.launch.tensor_map as core
from core.device.device cimport Context
from core.sync.reason cimport Status
from core.sync.ref cimport Ref
from ftcuda._objects.arrays.dlpack cimport CPU, CUDA
from ftcuda._objects.arrays.imports cimport located, view_of_argument
from ftcuda._objects.arrays.view_handle cimport ViewHandle
from ftcuda._objects.device.device_handle cimport DeviceHandle, as_device
from ftcuda._objects.support.deferred_release cimport foreign_reference, release_done
from ftcuda._objects.support.raising cimport check, raise_status, refuse_to_wait, refuse_to_make

from ftcuda._objects.support.options import checked
from ftcuda._objects.launch.tensor_map_options import (
    CORNERS,
    SIZES,
    TensorMapDescriptorOptions,
    TensorMapInterleave,
    TensorMapL2Promotion,
    TensorMapOOBFill,
    TensorMapSwizzle,
    alignment_of,
    check_enums,
    check_inner,
    check_tensor,
    steps,
    type_of,
)
from ftcuda._objects.arrays.elements import OPAQUE
from ftcuda.errors import NotSupportedError

cdef enum:    # DLPack's codes of element types
    SIGNED = 0
    UNSIGNED = 1


cdef class TensorMapDescriptor:
    """How the tensor memory accelerator finds the tiles of a tensor. Shared by any number of threads.

    Made by :meth:`StridedMemoryView.as_tensor_map` or :meth:`from_im2col`, and given to `launch` as it is, for a
    parameter of type ``const __grid_constant__ CUtensorMap``. Everything but the tensor's address is constant, and that
    changes by :meth:`replace_address` only. A launch reads the map once, wholly; so does each launch of a `BoundLaunch`
    to which the map is bound. ``bytes(map)`` is what it is at the moment, and may be bound instead.

    It keeps the tensor, and so does a launch with it until it is done. The tensor is kept where the garbage collector
    does not see it: one that has a map of itself lives until the map is given another address.

    Maps are equal while their bytes are; the hash is the same whatever the address.
    """

    _made = "tensor maps are made by StridedMemoryView.as_tensor_map() or TensorMapDescriptor.from_im2col()"

    def __dealloc__(self):
        if self._map != NULL:
            with nogil:
                self._map.release()
            release_done()  # its tensor

    @staticmethod
    cdef TensorMapDescriptor adopt(core.TensorMap* made, object device, unsigned alignment):
        cdef TensorMapDescriptor descriptor = TensorMapDescriptor.__new__(TensorMapDescriptor)
        descriptor._map = made
        descriptor._device = device
        descriptor._alignment = alignment
        return descriptor

    cdef ViewHandle read(self, char* bytes):
        """Stores the map of this moment in `bytes`, unless that is null. Returns its tensor, for the caller to keep."""
        cdef Ref[core.TensorMapState] state
        refuse_to_wait("read", "a tensor map")
        with nogil:
            state = self._map.state()
            if bytes != NULL:
                memcpy(bytes, state.get().bytes(), MAP_BYTES)
        view = <ViewHandle>state.get().tensor()
        with nogil:
            state = Ref[core.TensorMapState]()
        release_done()  # the tensor of another moment, if nobody else had that
        return view

    @staticmethod
    def from_tiled(view, options):
        """A map of tiles: boxes of the same shape anywhere in the tensor. See :meth:`StridedMemoryView.as_tensor_map`.

        Thread safety: atomic.
        """
        return tiled(view, checked(options, TensorMapDescriptorOptions))

    @staticmethod
    def from_im2col(
        view, pixel_box_lower_corner, pixel_box_upper_corner, channels_per_pixel, pixels_per_column, *,
        element_strides=None, data_type=None, interleave=TensorMapInterleave.NONE, swizzle=TensorMapSwizzle.NONE,
        l2_promotion=TensorMapL2Promotion.NONE, oob_fill=TensorMapOOBFill.NONE,
    ):
        """A map of columns of pixels, as convolutions read them, of a tensor ``(N, [[D,] H,] W, C)``.

        Parameters
        ----------
        view : StridedMemoryView or array
            Of 3 to 5 dimensions, channels last.
        pixel_box_lower_corner, pixel_box_upper_corner : tuple of int
            Offsets of the bounding box in each spatial dimension: from -32768 to 32767 with one of them, -128 to 127
            with two, -16 to 15 with three.
        channels_per_pixel : int
            At most 256.
        pixels_per_column : int
            At most 1024.
        element_strides, data_type, interleave, swizzle, l2_promotion, oob_fill
            As in `TensorMapDescriptorOptions`.

        Thread safety: atomic.

        Raises
        ------
        ValueError
            A limit of the driver is passed; the message names it.
        NotSupportedError
            The driver or the device has no tensor maps.
        """
        options = TensorMapDescriptorOptions(
            (), element_strides, data_type, interleave, swizzle, l2_promotion, oob_fill)
        return im2col(view, pixel_box_lower_corner, pixel_box_upper_corner, channels_per_pixel, pixels_per_column,
                      options)

    @property
    def device(self):
        """The device that the map was made for. Thread safety: atomic."""
        return self._device

    @property
    def view(self):
        """The tensor, of which the map is at the moment. Thread safety: atomic."""
        return self.read(NULL)

    def replace_address(self, tensor):
        """Changes the address in this map, for launches from now on: to that of memory which takes the tensor's place.

        A launch in another thread has the old address or the new one, and keeps the memory there until it is done. The
        old tensor is let go of with the last launch that has it.

        Parameters
        ----------
        tensor : StridedMemoryView or array
            Of the same shape, strides and element size as the map's, on its device, and aligned to 16 bytes, or to 32
            with INTERLEAVE_32B.

        Thread safety: atomic.

        Raises
        ------
        ValueError
            The tensor differs in more than its address; the map is unchanged.
        """
        cdef ViewHandle view = reachable(tensor, self._device)
        cdef ViewHandle present = self.read(NULL)
        cdef Status status
        cdef Context* context = (<DeviceHandle>self._device).context_of()
        cdef core.MappedMemory memory
        if (view._shape, view.full_strides(), view._bits) != (present._shape, present.full_strides(), present._bits):
            raise ValueError(
                f"cannot replace {present} in a tensor map by {view}: only the address may differ; make another map"
            )
        if view._pointer % self._alignment:
            raise ValueError(
                f"cannot replace {present} in a tensor map by {view}: its address must be a multiple of "
                f"{self._alignment}"
            )
        hold(memory, view)
        with nogil:
            status = self._map.replace_address(context[0], view._pointer, memory)
            memory = core.MappedMemory()
        release_done()  # the tensor that was there, unless a launch has it
        check(status, "replace the address in", self)

    def __bytes__(self):
        cdef char[MAP_BYTES] held
        self.read(held)
        return PyBytes_FromStringAndSize(held, MAP_BYTES)

    def __eq__(self, other):
        if not isinstance(other, TensorMapDescriptor):
            return NotImplemented
        return self is other or bytes(self) == bytes(other)

    def __hash__(self):
        cdef ViewHandle view = self.read(NULL)
        return hash((TensorMapDescriptor, view._shape, view._bits))  # which every address has in common

    def __repr__(self):
        return f"<TensorMapDescriptor of {self.view}>"


refuse_to_make(TensorMapDescriptor)


cdef int hold(core.MappedMemory& memory, ViewHandle view) except -1:
    """Makes `view` the memory of a map."""
    memory.tensor = foreign_reference(view)
    memory.buffer = view.core_buffer()
    return 0


cdef ViewHandle reachable(object tensor, object device):
    """A view of memory that kernels on `device` reach."""
    cdef ViewHandle view = view_of_argument(tensor, None)
    if view is None:
        raise TypeError(f"a tensor must be a StridedMemoryView or an array of a device, not {type(tensor).__name__}")
    view = located(view)
    if view._device_type == CPU:
        raise ValueError(f"a tensor map needs memory that the device reaches, which {view} is not")
    if device is not None and view._device_type == CUDA and view.device_id != device.device_id:
        raise ValueError(f"the tensor {view} is not on {device}")
    return view


cdef DeviceHandle device_for(ViewHandle view):
    """The device of a tensor that can have a map."""
    cdef DeviceHandle device = as_device(view.device_id) if view._device_type == CUDA else as_device(None)
    if not device.features.tensor_maps:
        capability = device.compute_capability
        raise NotSupportedError(
            f"cannot make a tensor map on {device}: that needs a driver of CUDA 12.0, this one is of "
            f"{device.features.driver_version}, and compute capability 9.0, this device has "
            f"{capability.major}.{capability.minor}"
        )
    return device


cdef tuple as_elements_of(ViewHandle view, object kind):
    """Shape, and strides in bytes, of the tensor as elements of `kind`. A buffer's bytes are taken as such elements."""
    size, itemsize = SIZES[kind], view.itemsize_of()
    strides = tuple([stride * itemsize for stride in view.full_strides()])
    if size == itemsize:
        return view._shape, strides
    if itemsize != 1 or view._code not in (SIGNED, UNSIGNED, OPAQUE) or view._shape == ():
        raise ValueError(
            f"{kind.name} has {size} bytes, and the elements of {view} have {itemsize}; only bytes are taken as "
            "elements of another size"
        )
    *outer, inner = view._shape
    if inner % size or strides[-1] != 1:
        raise ValueError(
            f"cannot take the bytes of {view} as {kind.name}: those of the last dimension must lie side by side, and "
            f"their number must be a multiple of {size}"
        )
    return (*outer, inner // size), (*strides[:-1], size)


cdef core.Tensor describe(ViewHandle view, object options, object kind, tuple ranks) except *:
    """The checked tensor, innermost dimension first."""
    cdef core.Tensor tensor
    check_enums(options)
    shape, strides = as_elements_of(view, kind)
    check_tensor(view._pointer, shape, strides, kind, options, ranks)
    rank = len(shape)
    element_strides = (1,) * rank
    if options.element_strides is not None:
        element_strides = steps(options.element_strides, "element_strides", rank, 1, 8)
    tensor.type = kind
    tensor.rank = rank
    tensor.address = view._pointer
    for index in range(rank):
        tensor.extents[index] = shape[rank - 1 - index]
        tensor.element_strides[index] = element_strides[rank - 1 - index]
        if index + 1 < rank:
            tensor.strides[index] = strides[rank - 2 - index]
    tensor.interleave, tensor.swizzle = options.interleave, options.swizzle
    tensor.promotion, tensor.fill = options.l2_promotion, options.oob_fill
    return tensor


def tiled(given, options):
    """Behind `StridedMemoryView.as_tensor_map`."""
    cdef ViewHandle view = reachable(given, None)
    cdef DeviceHandle device = device_for(view)
    kind = type_of(options.data_type, (view._code, view._bits))
    cdef core.Tensor tensor = describe(view, options, kind, (1, 2, 3, 4, 5))
    cdef core.Steps box
    cdef Ref[core.TensorMap] made
    cdef core.MappedMemory memory
    cdef Status status
    cdef Context* context = device.context_of()
    extents = steps(options.box_dim, "box_dim", tensor.rank, 1, 256)
    check_inner(extents[-1], kind, options, "box_dim")
    for index in range(tensor.rank):
        box[index] = extents[tensor.rank - 1 - index]
    hold(memory, view)
    with nogil:
        status = core.TensorMap.tiled(context[0], tensor, box, memory, made)
        memory = core.MappedMemory()
    if not status.ok():
        release_done()  # the view
        raise_status(status, "make a tensor map of", view)
    return TensorMapDescriptor.adopt(made.detach(), device, alignment_of(options))


cdef TensorMapDescriptor im2col(object given, object lower, object upper, object channels, object pixels,
                                object options):
    cdef ViewHandle view = reachable(given, None)
    cdef DeviceHandle device = device_for(view)
    kind = type_of(options.data_type, (view._code, view._bits))
    cdef core.Tensor tensor = describe(view, options, kind, (3, 4, 5))
    cdef core.Im2col columns
    cdef Ref[core.TensorMap] made
    cdef core.MappedMemory memory
    cdef Status status
    cdef Context* context = device.context_of()
    spatial = tensor.rank - 2
    limit = CORNERS[tensor.rank]
    lower = steps(lower, "pixel_box_lower_corner", spatial, -limit, limit - 1)
    upper = steps(upper, "pixel_box_upper_corner", spatial, -limit, limit - 1)
    (columns.channels,) = steps((channels,), "channels_per_pixel", 1, 1, 256)
    (columns.pixels,) = steps((pixels,), "pixels_per_column", 1, 1, 1024)
    check_inner(channels, kind, options, "channels_per_pixel")
    for index in range(spatial):
        columns.lower[index] = lower[spatial - 1 - index]
        columns.upper[index] = upper[spatial - 1 - index]
    hold(memory, view)
    with nogil:
        status = core.TensorMap.im2col(context[0], tensor, columns, memory, made)
        memory = core.MappedMemory()
    if not status.ok():
        release_done()  # the view
        raise_status(status, "make a tensor map of", view)
    return TensorMapDescriptor.adopt(made.detach(), device, alignment_of(options))
