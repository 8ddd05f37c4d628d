"""A library's function that takes any array, of the host or of a device, and scales it in place."""

import numpy as np
from common import compiled, core, current_device, utils

SOURCE = 'extern "C" __global__ void scale(int* x, int factor, int n) { if (threadIdx.x < n) x[threadIdx.x] *= factor; }'

device = current_device()
stream = device.create_stream()
kernel = compiled(SOURCE).get_kernel("scale")


@utils.args_viewable_as_strided_memory((0,))
def scale(array, factor):
    view = array.view(-1)  # of the host, or waited for: there is no order to establish
    assert view.dtype == np.int32 and len(view.shape) == 1 and view.strides in (None, (1,)) and not view.readonly
    if view.is_device_accessible:
        config = core.LaunchConfig(grid=1, block=64)
        core.launch(stream, config, kernel, view.ptr, np.int32(factor), np.int32(view.shape[0]))
        stream.sync()
    else:
        np.from_dlpack(view.exporting_obj)[:] *= factor
    return view.device_id


on_host = np.arange(50, dtype=np.int32)
assert scale(on_host, 3) == -1 and (on_host == 3 * np.arange(50)).all()


class Both:
    """An array of the device by the CUDA Array Interface."""

    def __init__(self, buffer, count):
        self.__cuda_array_interface__ = {
            "shape": (count,), "typestr": "<i4", "data": (int(buffer.handle), False), "version": 3, "strides": None,
            "stream": 1,
        }


pinned = core.LegacyPinnedMemoryResource().allocate(4 * 50)
values = np.from_dlpack(pinned).view(np.int32)
values[:] = np.arange(50)
assert scale(Both(pinned, 50), 5) == 0 and (values == 5 * np.arange(50)).all()
