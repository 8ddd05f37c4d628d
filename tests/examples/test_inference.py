import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from examples.inference.model import forward, load_digits, load_weights, split
from examples.inference.worker import SharedModel, Worker
from ftcuda.testing import simulation
from tests.conftest import PROFILE, simulated_only
from tests.kernels import IS_SIMULATED

ROOT = Path(__file__).resolve().parents[2]


def test_the_reference_knows_its_digits():
    _, _, images, labels = split(*load_digits())
    assert len(images) >= 360
    assert np.mean(forward(images, load_weights()).argmax(axis=1) == labels) >= 0.96


@pytest.mark.skipif(IS_SIMULATED and PROFILE != "13.5", reason="the example compiles for the driver as it is")
@pytest.mark.parametrize(("way", "submitted"), [([], "call by call"), (["--graph"], "as one graph")])
def test_the_example_runs(tmp_path, way, submitted):
    arguments = [
        *way,
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
        timeout=240,
        env=dict(os.environ),
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert f"each request is submitted {submitted}" in result.stdout
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert figures["submitted"] == submitted
    assert [row["threads"] for row in figures["results"]] == [1, 4] and (tmp_path / "plot.png").stat().st_size > 1000


@simulated_only
@pytest.mark.skipif(PROFILE != "13.5", reason="the example compiles for the driver as it is")
@pytest.mark.thread_unsafe(reason="counts the calls of all threads")
@pytest.mark.parametrize("with_graph", [False, True])
def test_a_graph_is_the_whole_request(device, with_graph):
    """One launch each, whose memory lives on though the worker lets go of it."""
    _, _, images, _ = split(*load_digits())
    worker = Worker(SharedModel(device, load_weights()), with_graph=with_graph)
    worker.stream.sync()
    if with_graph:
        worker.launches.clear()
        for buffer in (worker.device_pixels, worker.device_digit, *worker.activations):
            buffer.close()
    before = {name: simulation.calls(name) for name in ("cuLaunchKernelEx", "cuMemcpyAsync", "cuGraphLaunch")}
    for image, reference in zip(images[:3], forward(images[:3], load_weights()), strict=True):
        digit, logits = worker.infer(image)
        assert digit == reference.argmax() and np.abs(logits - reference).max() < 1e-3
    made = tuple(simulation.calls(name) - count for name, count in before.items())
    assert made == ((0, 0, 3) if with_graph else (15, 9, 0))
