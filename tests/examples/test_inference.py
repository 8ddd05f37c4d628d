import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from examples.inference.model import forward, load_digits, load_weights, split
from tests.conftest import IS_SIMULATED, PROFILE

ROOT = Path(__file__).resolve().parents[2]


def test_the_reference_knows_its_digits():
    _, _, images, labels = split(*load_digits())
    assert len(images) >= 360
    assert np.mean(forward(images, load_weights()).argmax(axis=1) == labels) >= 0.96


@pytest.mark.skipif(IS_SIMULATED and PROFILE != "13.5", reason="the example compiles for the driver as it is")
def test_the_example_runs(tmp_path):
    arguments = [
        "--threads",
        "1,4",
        "--requests",
        "40",
        "--plot",
        str(tmp_path / "plot.png"),
        "--json",
        str(tmp_path / "figures.json"),
    ]
    result = subprocess.run(
        [sys.executable, "-m", "examples.inference", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        env=dict(os.environ),
    )
    assert result.returncode == 0, result.stdout + result.stderr
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert [row["threads"] for row in figures["results"]] == [1, 4] and (tmp_path / "plot.png").stat().st_size > 1000
