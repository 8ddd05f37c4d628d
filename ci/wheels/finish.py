"""Takes the debug symbols out of a wheel and puts a bill of materials in.

`python ci/wheels/finish.py WHEEL FOLDER SYMBOLS`. The wheel comes to FOLDER, the symbols to SYMBOLS, in a file of the
same name that ends in .debug.tar.xz: `*.debug` files, which debuggers find by the links in the libraries.
"""

import json
import os
import subprocess
import sys
import tarfile
import tempfile
import uuid
from datetime import UTC, datetime
from pathlib import Path

EPOCH = int(os.environ["SOURCE_DATE_EPOCH"])


def split(library: Path, prefix: str, symbols: Path) -> None:
    """Moves the debug symbols of a library into `symbols`."""
    subprocess.run([f"{prefix}objcopy", "--only-keep-debug", library, symbols], check=True)
    subprocess.run([f"{prefix}objcopy", "--strip-unneeded", f"--add-gnu-debuglink={symbols}", library], check=True)


def bill_of_materials(name: str, version: str, wheel: str) -> str:
    """Returns what is in the wheel, in CycloneDX: nothing but ftcuda itself."""
    component = {
        "type": "library",
        "name": name,
        "version": version,
        "purl": f"pkg:pypi/{name}@{version}?file_name={wheel}",
        "licenses": [{"license": {"id": "Apache-2.0"}}],
    }
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, component['purl'])}",
        "version": 1,
        "metadata": {"timestamp": datetime.fromtimestamp(EPOCH, UTC).isoformat(), "component": component},
        "components": [],  # nothing of others is vendored or linked in, but for parts of the C++ library in one file
        "dependencies": [],
    }
    return json.dumps(bill, indent=2) + "\n"


def pack(folder: Path, file: Path) -> None:
    """Packs a folder, the same bytes each time."""
    with tarfile.open(file, "w:xz") as archive:
        for path in sorted(folder.rglob("*.debug")):
            member = archive.gettarinfo(path, str(path.relative_to(folder)))
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            member.mode, member.mtime = 0o644, EPOCH
            with path.open("rb") as content:
                archive.addfile(member, content)


def main() -> None:
    wheel, finished, dist = (Path(each) for each in sys.argv[1:])
    name, version, *_, platform = wheel.stem.split("-")
    arch = platform.removeprefix("linux_")
    prefix = "" if arch == os.uname().machine else f"{arch}-linux-gnu-"
    finished.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        work = Path(place)
        subprocess.run([sys.executable, "-m", "wheel", "unpack", "-d", work, wheel], check=True, stdout=sys.stderr)
        tree = work / f"{name}-{version}"
        for library in sorted(tree.rglob("*.so")):
            target = work / "symbols" / library.relative_to(tree).with_suffix(".debug")
            target.parent.mkdir(parents=True, exist_ok=True)
            split(library, prefix, target)
        sboms = tree / f"{name}-{version}.dist-info" / "sboms"
        sboms.mkdir()
        (sboms / f"{name}.cdx.json").write_text(bill_of_materials(name, version, wheel.name))
        subprocess.run([sys.executable, "-m", "wheel", "pack", "-d", finished, tree], check=True, stdout=sys.stderr)
        pack(work / "symbols", dist / f"{wheel.stem}.debug.tar.xz")


main()
