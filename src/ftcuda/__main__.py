"""``python -m ftcuda info``: what this installation finds."""

import argparse
import json
import sys
import sysconfig
from importlib import metadata, util
from typing import Any

import ftcuda
from ftcuda._objects.code.linker import find_nvjitlink, nvjitlink_version
from ftcuda._objects.code.program import find_nvrtc


def gather() -> dict[str, Any]:
    """Returns interpreter, wheel, driver, devices, NVRTC and nvJitLink, each with what was wrong with it."""
    found: dict[str, Any] = {
        "ftcuda": ftcuda.__version__,
        "wheel": wheel_tags(),
        "interpreter": {
            "version": sys.version.split()[0],
            "build": "free-threaded" if sysconfig.get_config_var("Py_GIL_DISABLED") else "with the GIL",
            "gil": "enabled" if sys._is_gil_enabled() else "disabled",
        },
        "include": ftcuda.get_include(),
    }
    try:
        info = ftcuda.driver_info()
        found["driver"] = {"version": info.version, "path": info.path, "simulated": info.simulated}
        found["devices"] = [describe(device) for device in ftcuda.Device.get_all_devices()]
    except (ftcuda.DriverNotFoundError, ftcuda.CUDAError) as problem:
        found["driver"] = {"problem": str(problem)}
        found["devices"] = []
    try:
        version = ".".join(map(str, ftcuda.nvrtc_version()))
        found["nvrtc"] = {"version": version, "path": str(find_nvrtc()[0])}
    except ftcuda.NVRTCError as problem:
        found["nvrtc"] = {"problem": str(problem)}
    try:
        version = ".".join(map(str, nvjitlink_version()))
        found["nvjitlink"] = {"version": version, "path": str(find_nvjitlink()[0])}
    except ftcuda.LinkerError as problem:
        found["nvjitlink"] = {"problem": str(problem)}
    return found


def wheel_tags() -> list[str]:
    """Returns the tags of the wheel that was installed; none where ftcuda was not installed from one."""
    try:
        text = metadata.distribution("ftcuda").read_text("WHEEL") or ""
    except metadata.PackageNotFoundError:
        return []
    return [line.partition(": ")[2] for line in text.splitlines() if line.startswith("Tag: ")]


def describe(device: ftcuda.Device) -> dict[str, Any]:
    """Returns what there is to know about a device."""
    return {
        "device_id": device.device_id,
        "name": device.name,
        "compute_capability": ".".join(map(str, device.compute_capability)),
        "memory": device.total_memory,
        "features": device.features.as_dict(),
    }


def show(found: dict[str, Any]) -> None:
    """Prints it as tables, where rich is installed, else as lines."""
    rows = [
        ("ftcuda", f"{found['ftcuda']} {' '.join(found['wheel'])}".rstrip()),
        ("interpreter", "CPython {version}, {build}, GIL {gil}".format(**found["interpreter"])),
        ("driver", found["driver"].get("problem") or "{version} at {path}".format(**found["driver"])),
        ("NVRTC", found["nvrtc"].get("problem") or "{version} at {path}".format(**found["nvrtc"])),
        ("headers", found["include"]),
    ]
    if found["driver"].get("simulated"):
        rows.append(("", "the simulated driver: kernels run on the CPU"))
    for device in found["devices"]:
        gibibytes = device["memory"] / 2**30
        title = f"{device['name']}, compute capability {device['compute_capability']}, {gibibytes:.1f} GiB"
        rows.append((f"device {device['device_id']}", title))
        rows += [(f"  {name}", str(value)) for name, value in device["features"].items()]
    if util.find_spec("rich") is None:
        for name, text in rows:
            print(f"{name:<28} {text}")
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    for name, text in rows:
        table.add_row(name, text)
    # Paths and messages have brackets and colons of their own.
    Console(highlight=False, markup=False, emoji=False).print(table)


def main() -> int:
    """Returns the exit status: 1 if the driver or NVRTC is missing."""
    parser = argparse.ArgumentParser(prog="python -m ftcuda", description=__doc__)
    parser.add_argument("command", nargs="?", choices=["info"], default="info", help="what to do; info is all there is")
    parser.add_argument("--json", action="store_true", help="print it for programs")
    options = parser.parse_args()
    found = gather()
    if options.json:
        print(json.dumps(found, indent=1))
    else:
        show(found)
    return 1 if "problem" in found["driver"] or "problem" in found["nvrtc"] else 0


if __name__ == "__main__":
    sys.exit(main())
