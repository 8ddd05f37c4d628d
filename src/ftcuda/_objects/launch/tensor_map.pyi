from ftcuda._objects.arrays.view import StridedMemoryView
from ftcuda._objects.device.device import Device
from ftcuda._objects.launch.tensor_map_options import (
    TensorMapDescriptorOptions,
    TensorMapInterleave,
    TensorMapL2Promotion,
    TensorMapOOBFill,
    TensorMapSwizzle,
)
from ftcuda._objects.memory.buffer import DeviceArray

class TensorMapDescriptor:
    @staticmethod
    def from_tiled(
        view: StridedMemoryView | DeviceArray, options: TensorMapDescriptorOptions | dict[str, object]
    ) -> TensorMapDescriptor: ...
    @staticmethod
    def from_im2col(
        view: StridedMemoryView | DeviceArray,
        pixel_box_lower_corner: tuple[int, ...],
        pixel_box_upper_corner: tuple[int, ...],
        channels_per_pixel: int,
        pixels_per_column: int,
        *,
        element_strides: tuple[int, ...] | None = None,
        data_type: object = None,
        interleave: TensorMapInterleave = ...,
        swizzle: TensorMapSwizzle = ...,
        l2_promotion: TensorMapL2Promotion = ...,
        oob_fill: TensorMapOOBFill = ...,
    ) -> TensorMapDescriptor: ...
    @property
    def device(self) -> Device: ...
    @property
    def view(self) -> StridedMemoryView: ...
    def replace_address(self, tensor: StridedMemoryView | DeviceArray) -> None: ...
    def __bytes__(self) -> bytes: ...
