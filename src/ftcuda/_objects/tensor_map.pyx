"""Tensor maps."""

cimport core.tensor_map as core
from core.device cimport Context
from core.lifetime cimport Ref
from core.status cimport Status
from ftcuda._objects.device cimport Device
from ftcuda._objects.dlpack cimport CPU, CUDA
from ftcuda._objects.raising cimport raise_status, refuse_to_make
from ftcuda._objects.view cimport StridedMemoryView, located, view_of_argument

from ftcuda._objects.options import checked
from ftcuda._objects.tensor_map_options import (
    CORNERS,
    SIZES,
    TensorMapDescriptorOptions,
    TensorMapInterleave,
    TensorMapL2Promotion,
    TensorMapOOBFill,
    TensorMapSwizzle,
    check_enums,
    check_inner,
    check_tensor,
    steps,
    type_of,
)
from ftcuda.errors import NotSupportedError


cdef class TensorMapDescriptor:
    """How the tensor memory accelerator finds the tiles of a tensor. Constant, and shared by any number of threads.

    Made by :meth:`StridedMemoryView.as_tensor_map` or :meth:`from_im2col`, and given to `launch` as it is, for a parameter
    of type ``const __grid_constant__ CUtensorMap``. It keeps the tensor, and so does a launch with it until it is done.
    """

    _made = "tensor maps are made by StridedMemoryView.as_tensor_map() or TensorMapDescriptor.from_im2col()"

    def __dealloc__(self):
        if self._map != NULL:
            self._map.release()

    @staticmethod
    cdef TensorMapDescriptor adopt(core.TensorMap* made, StridedMemoryView view, object device):
        cdef TensorMapDescriptor descriptor = TensorMapDescriptor.__new__(TensorMapDescriptor)
        descriptor._map = made
        descriptor._view = view
        descriptor._device = device
        return descriptor

    @staticmethod
    def from_tiled(view, options):
        """A map of tiles: boxes of the same shape anywhere in the tensor. See :meth:`StridedMemoryView.as_tensor_map`.

        Thread safety: atomic.
        """
        return tiled(view, checked(options, TensorMapDescriptorOptions))

    @staticmethod
    def from_im2col(
        view, pixel_box_lower_corner, pixel_box_upper_corner, channels_per_pixel, pixels_per_column, *, element_strides=None,
        data_type=None, interleave=TensorMapInterleave.NONE, swizzle=TensorMapSwizzle.NONE,
        l2_promotion=TensorMapL2Promotion.NONE, oob_fill=TensorMapOOBFill.NONE,
    ):
        """A map of columns of pixels, as convolutions read them, of a tensor ``(N, [[D,] H,] W, C)``.

        Parameters
        ----------
        view : StridedMemoryView or array
            Of 3 to 5 dimensions, channels last.
        pixel_box_lower_corner, pixel_box_upper_corner : tuple of int
            Offsets of the bounding box in each spatial dimension: from -32768 to 32767 with one of them, -128 to 127 with
            two, -16 to 15 with three.
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
        return im2col(view, pixel_box_lower_corner, pixel_box_upper_corner, channels_per_pixel, pixels_per_column, options)

    @property
    def device(self):
        """The device that the map was made for. Thread safety: atomic."""
        return self._device

    @property
    def view(self):
        """The tensor. Thread safety: atomic."""
        return self._view

    def replace_address(self, tensor):
        """Returns a map that is the same but for the tensor's address.

        Parameters
        ----------
        tensor : StridedMemoryView or array
            Of the same shape, strides and element size.

        Returns
        -------
        TensorMapDescriptor
            This one stays what it is: other threads may be launching with it.

        Thread safety: atomic.
        """
        cdef StridedMemoryView view = reachable(tensor, self._device)
        cdef Ref[core.TensorMap] made
        cdef Status status
        cdef Context* context = (<Device>self._device).context_of()
        if (view._shape, view.full_strides(), view._bits) != (self._view._shape, self._view.full_strides(), self._view._bits):
            raise ValueError(f"cannot replace {self._view} in a tensor map by {view}: only the address may differ")
        if (view._pointer ^ self._view._pointer) % 32:
            raise ValueError(f"cannot replace {self._view} in a tensor map by {view}: its address is aligned differently")
        with nogil:
            status = self._map.at(context[0], view._pointer, made)
        if not status.ok():
            raise_status(status, "replace the address in", self)
        return TensorMapDescriptor.adopt(made.detach(), view, self._device)

    def __bytes__(self):
        return (<const char*>self._map.bytes())[:128]

    def __eq__(self, other):
        if not isinstance(other, TensorMapDescriptor):
            return NotImplemented
        return bytes(self) == bytes(other)

    def __hash__(self):
        return hash(bytes(self))

    def __repr__(self):
        return f"<TensorMapDescriptor of {self._view}>"


refuse_to_make(TensorMapDescriptor)


cdef StridedMemoryView reachable(object tensor, object device):
    """A view of memory that kernels on `device` reach."""
    cdef StridedMemoryView view = view_of_argument(tensor, None)
    if view is None:
        raise TypeError(f"a tensor must be a StridedMemoryView or an array of a device, not {type(tensor).__name__}")
    view = located(view)
    if view._device_type == CPU:
        raise ValueError(f"a tensor map needs memory that the device reaches, which {view} is not")
    if device is not None and view._device_type == CUDA and view.device_id != device.device_id:
        raise ValueError(f"the tensor {view} is not on {device}")
    return view


cdef Device device_for(StridedMemoryView view):
    """The device of a tensor that can have a map."""
    cdef Device device = Device(view.device_id) if view._device_type == CUDA else Device()
    if not device.features.tensor_maps:
        capability = device.compute_capability
        raise NotSupportedError(
            f"cannot make a tensor map on {device}: that needs a driver of CUDA 12.0, this one is of "
            f"{device.features.driver_version}, and compute capability 9.0, this device has {capability.major}.{capability.minor}"
        )
    return device


cdef core.Tensor describe(StridedMemoryView view, object options, object kind, tuple ranks) except *:
    """The checked tensor, innermost dimension first."""
    cdef core.Tensor tensor
    check_enums(options)
    if SIZES[kind] != view.itemsize_of():
        raise ValueError(f"{kind.name} has {SIZES[kind]} bytes, and the elements of {view} have {view.itemsize_of()}")
    strides = tuple([stride * SIZES[kind] for stride in view.full_strides()])
    check_tensor(view._pointer, view._shape, strides, kind, options, ranks)
    rank = len(view._shape)
    element_strides = (1,) * rank
    if options.element_strides is not None:
        element_strides = steps(options.element_strides, "element_strides", rank, 1, 8)
    tensor.type = kind
    tensor.rank = rank
    tensor.address = view._pointer
    for index in range(rank):
        tensor.extents[index] = view._shape[rank - 1 - index]
        tensor.element_strides[index] = element_strides[rank - 1 - index]
        if index + 1 < rank:
            tensor.strides[index] = strides[rank - 2 - index]
    tensor.interleave, tensor.swizzle = options.interleave, options.swizzle
    tensor.promotion, tensor.fill = options.l2_promotion, options.oob_fill
    return tensor


def tiled(given, options):
    """Behind `StridedMemoryView.as_tensor_map`."""
    cdef StridedMemoryView view = reachable(given, None)
    cdef Device device = device_for(view)
    kind = type_of(options.data_type, (view._code, view._bits))
    cdef core.Tensor tensor = describe(view, options, kind, (1, 2, 3, 4, 5))
    cdef core.Steps box
    cdef Ref[core.TensorMap] made
    cdef Status status
    cdef Context* context = device.context_of()
    extents = steps(options.box_dim, "box_dim", tensor.rank, 1, 256)
    check_inner(extents[-1], kind, options, "box_dim")
    for index in range(tensor.rank):
        box[index] = extents[tensor.rank - 1 - index]
    with nogil:
        status = core.TensorMap.tiled(context[0], tensor, box, made)
    if not status.ok():
        raise_status(status, "make a tensor map of", view)
    return TensorMapDescriptor.adopt(made.detach(), view, device)


cdef TensorMapDescriptor im2col(object given, object lower, object upper, object channels, object pixels, object options):
    cdef StridedMemoryView view = reachable(given, None)
    cdef Device device = device_for(view)
    kind = type_of(options.data_type, (view._code, view._bits))
    cdef core.Tensor tensor = describe(view, options, kind, (3, 4, 5))
    cdef core.Im2col columns
    cdef Ref[core.TensorMap] made
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
    with nogil:
        status = core.TensorMap.im2col(context[0], tensor, columns, made)
    if not status.ok():
        raise_status(status, "make a tensor map of", view)
    return TensorMapDescriptor.adopt(made.detach(), view, device)
