from typing import Any

import numpy as np
import numpy.typing as npt

from ftcuda._objects.launch.tensor_map import TensorMapDescriptor
from ftcuda._objects.launch.tensor_map_options import (
    TensorMapDescriptorOptions,
    TensorMapInterleave,
    TensorMapL2Promotion,
    TensorMapOOBFill,
    TensorMapSwizzle,
)
from ftcuda._objects.memory.buffer import AnyArray, Buffer, DeviceArray
from ftcuda._objects.stream.stream import AnyStream

class StridedMemoryView:
    def __init__(self, obj: AnyArray | None = None, stream_ptr: int | AnyStream | None = None) -> None: ...
    @staticmethod
    def from_dlpack(obj: DeviceArray, stream_ptr: int | AnyStream | None = None) -> StridedMemoryView: ...
    @staticmethod
    def from_cuda_array_interface(obj: DeviceArray, stream_ptr: int | AnyStream | None = None) -> StridedMemoryView: ...
    @staticmethod
    def from_array_interface(obj: object) -> StridedMemoryView: ...
    @staticmethod
    def from_any_interface(obj: AnyArray, stream_ptr: int | AnyStream | None = None) -> StridedMemoryView: ...
    @staticmethod
    def from_buffer(
        buffer: Buffer,
        shape: tuple[int, ...],
        strides: tuple[int, ...] | None = None,
        *,
        itemsize: int | None = None,
        dtype: npt.DTypeLike | None = None,
        is_readonly: bool = False,
    ) -> StridedMemoryView: ...
    def view(self, layout: None = None, dtype: npt.DTypeLike | None = None) -> StridedMemoryView: ...
    @property
    def ptr(self) -> int: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...] | None: ...
    @property
    def size(self) -> int: ...
    @property
    def itemsize(self) -> int: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def device_id(self) -> int: ...
    @property
    def readonly(self) -> bool: ...
    @property
    def exporting_obj(self) -> object: ...
    @property
    def is_device_accessible(self) -> bool: ...
    @property
    def is_host_accessible(self) -> bool: ...
    def copy_from(
        self, other: StridedMemoryView, stream: AnyStream, allocator: None = None, blocking: bool | None = None
    ) -> None: ...
    def copy_to(
        self,
        other: StridedMemoryView,
        stream: AnyStream | None = None,
        allocator: None = None,
        blocking: bool | None = None,
    ) -> None: ...
    def as_tensor_map(
        self,
        box_dim: tuple[int, ...] | None = None,
        *,
        options: TensorMapDescriptorOptions | dict[str, object] | None = None,
        element_strides: tuple[int, ...] | None = None,
        data_type: object = None,
        interleave: TensorMapInterleave | None = None,
        swizzle: TensorMapSwizzle | None = None,
        l2_promotion: TensorMapL2Promotion | None = None,
        oob_fill: TensorMapOOBFill | None = None,
    ) -> TensorMapDescriptor: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object: ...
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...
    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
