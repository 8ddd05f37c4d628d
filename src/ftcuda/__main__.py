"""``python -m ftcuda``: what this installation finds."""

import sys
import sysconfig

import ftcuda


def main() -> int:
    """Prints interpreter, driver, devices and NVRTC. Returns the exit status."""
    gil = "enabled" if sys._is_gil_enabled() else "disabled"
    build = "free-threaded" if sysconfig.get_config_var("Py_GIL_DISABLED") else "with the GIL"
    print(f"ftcuda {ftcuda.__version__}, CPython {sys.version.split()[0]} ({build}; GIL {gil})")
    status = 0
    try:
        info = ftcuda.driver_info()
        print(f"driver {info.version} at {info.path}{' (simulated)' if info.simulated else ''}")
        for device in ftcuda.Device.get_all_devices():
            capability = ".".join(map(str, device.compute_capability))
            print(f"device {device.device_id}: {device.name}, compute capability {capability}")
            for name, value in device.features.as_dict().items():
                print(f"    {name}: {value}")
    except (ftcuda.DriverNotFoundError, ftcuda.CUDAError) as problem:
        print(f"driver: {problem}")
        status = 1
    try:
        print("NVRTC {}.{}".format(*ftcuda.nvrtc_version()))
    except ftcuda.NVRTCError as problem:
        print(f"NVRTC: {problem}")
        status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
