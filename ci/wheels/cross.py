"""Writes what meson needs to know of an interpreter that does not run here: a cross file, and PEP 739 of it.

`python ci/wheels/cross.py ARCH CCACHE COMPILER FOLDER`, with an interpreter of the same version and kind for this
machine, whose headers are the same for all 64-bit Linux.
"""

import json
import sys
import sysconfig
from pathlib import Path

arch, ccache, compiler, folder = *sys.argv[1:4], Path(sys.argv[4])
folder.mkdir(parents=True, exist_ok=True)
folder.joinpath("cross.ini").write_text(
    f"""[binaries]
c = '{arch}-linux-gnu-gcc'
cpp = ['{ccache}', '{compiler}']
strip = '{arch}-linux-gnu-strip'

[host_machine]
system = 'linux'
cpu_family = '{arch}'
cpu = '{arch}'
endian = 'little'
"""
)
major, minor, micro, level, serial = sys.version_info
numbers = {"major": major, "minor": minor, "micro": micro, "releaselevel": level, "serial": serial}
suffix = sysconfig.get_config_var("EXT_SUFFIX")
tag = sys.implementation.cache_tag
flags = ["t"] if sysconfig.get_config_var("Py_GIL_DISABLED") else []
details = {
    "schema_version": "1.0",
    "base_prefix": "/usr",
    "base_interpreter": f"/usr/bin/python{major}.{minor}{''.join(flags)}",
    "platform": f"linux-{arch}",
    "language": {"version": f"{major}.{minor}", "version_info": numbers},
    "implementation": {
        "name": "cpython",
        "cache_tag": tag,
        "version": numbers,
        "hexversion": sys.hexversion,
        "_multiarch": f"{arch}-linux-gnu",
    },
    "abi": {
        "flags": flags,
        "extension_suffix": suffix.replace(sysconfig.get_config_var("MULTIARCH"), f"{arch}-linux-gnu"),
        "stable_abi_suffix": ".abi3.so",
    },
    "libpython": {"link_extensions": False},
    "c_api": {"headers": sysconfig.get_path("include")},
}
folder.joinpath("build-details.json").write_text(json.dumps(details, indent=2))
