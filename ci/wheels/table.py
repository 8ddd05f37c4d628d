"""Prints what is in a folder of wheels: name, size, digest, auditwheel's words: `python ci/wheels/table.py FOLDER`.

Fails if auditwheel does not allow the tag that a wheel has.
"""

import hashlib
import re
import subprocess
import sys
from pathlib import Path


def glibc(text: str) -> tuple[int, ...]:
    """Returns the version of glibc in a tag."""
    return tuple(map(int, re.findall(r"manylinux_(\d+)_(\d+)", text)[0]))


wrong = []
for path in sorted(Path(sys.argv[1]).iterdir()):
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    print(f"{path.name}: {path.stat().st_size:,} bytes, sha256 {digest}")
    if path.suffix != ".whl":
        continue
    auditwheel = Path(sys.executable).parent / "auditwheel"
    said = subprocess.run([auditwheel, "show", path], check=True, capture_output=True, text=True).stdout
    (needed,) = re.findall(r'following platform tag:\s+"(\w+)"', said)
    print(f"    auditwheel: {needed}")
    if not needed.startswith("manylinux") or glibc(needed) > glibc(path.name):
        wrong.append(path.name)
if wrong:
    sys.exit(f"auditwheel does not allow the tags of {', '.join(wrong)}")
