"""``python -m ftcuda info``."""

import json
import os
import subprocess
import sys

import pytest

import ftcuda

pytestmark = pytest.mark.thread_unsafe(reason="starts processes, which take long under a sanitizer")


def info(*arguments, **environment):
    command = [sys.executable, "-m", "ftcuda", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=280, env={**os.environ, **environment})


def test_it_says_what_was_found():
    said = info()
    assert said.returncode == 0, said.stderr
    assert ftcuda.__version__ in said.stdout and "memory_pools" in said.stdout


def test_it_says_so_to_programs(device):
    found = json.loads(info("info", "--json").stdout)
    assert found["driver"]["version"] == ftcuda.driver_info().version
    assert found["interpreter"]["gil"] == ("enabled" if sys._is_gil_enabled() else "disabled")
    assert found["devices"][0]["features"] == device.features.as_dict()
    assert found["include"] == ftcuda.get_include()


def test_it_says_what_is_missing():
    said = info("info", "--json", FTCUDA_DRIVER="/nowhere/libcuda.so.1")
    assert said.returncode == 1 and "/nowhere/libcuda.so.1" in json.loads(said.stdout)["driver"]["problem"]
    assert "/nowhere" in info(FTCUDA_DRIVER="/nowhere/libcuda.so.1").stdout


def test_brackets_and_colons_are_no_markup():
    """Mutant: a console that reads markup drops ``[cu12]`` and ``[/]``, and prints a picture for ``:warning:``."""
    pytest.importorskip("rich", reason="prints lines without it")
    said = info(FTCUDA_DRIVER="/nowhere/[cu12]/[red]/:warning:/libcuda.so.1")
    assert said.returncode == 1, said.stderr
    assert "[cu12]/[red]/:warning:" in "".join(said.stdout.split())
    nvrtc = info(FTCUDA_NVRTC="/nowhere/libnvrtc.so")
    assert nvrtc.returncode == 1 and "ftcuda[cu12]" in "".join(nvrtc.stdout.split())
