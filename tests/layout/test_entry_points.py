"""The list of entry points against the list of signatures that ci/abi.sh compares with the real headers."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ENTRY = re.compile(r'^FTCUDA_ENTRY\((\w+), "(\w+)", (\d+), (required|optional), (quick|blocks), \(', re.MULTILINE)
SIGNATURE = re.compile(r"^SAME_SIGNATURE\((\w+), PFN_(\w+)_v(\d+)\);", re.MULTILINE)
SIMULATED = re.compile(r'^FTCUDA_SIM_ENTRY\((\w+), "(\w+)", (\d+), \(', re.MULTILINE)
OLDEST_DRIVER = 11020


def test_every_entry_point_is_compared_with_the_real_header():
    text = (ROOT / "src/ftcuda/_driver/entry_points.def").read_text()
    entries = [match.groups()[:3] for match in ENTRY.finditer(text)]
    assert len(entries) == text.count("\nFTCUDA_ENTRY(") and entries
    signatures = SIGNATURE.findall((ROOT / "tests/driver/abi_signatures.inc").read_text())
    assert sorted(signatures) == sorted(entries)


def test_so_is_what_only_the_simulated_driver_has():
    text = (ROOT / "src/simdriver/calls/entry_points.def").read_text()
    entries = SIMULATED.findall(text)
    assert len(entries) == text.count("\nFTCUDA_SIM_ENTRY(") and entries
    signatures = SIGNATURE.findall((ROOT / "tests/driver/simulated_signatures.inc").read_text())
    assert sorted(signatures) == sorted(entries)


def test_what_the_oldest_driver_lacks_is_optional():
    text = (ROOT / "src/ftcuda/_driver/entry_points.def").read_text()
    for symbol, _, version, need, _ in ENTRY.findall(text):
        assert int(version) <= OLDEST_DRIVER or need == "optional", symbol
