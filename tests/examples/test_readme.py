"""README's example runs on the loaded driver, as it stands there."""

import re
from pathlib import Path

import numpy as np

README = Path(__file__).parents[2] / "README.md"


def test_the_example():
    (text,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    names = {}
    exec(compile(text, README.name, "exec"), names)
    assert (names["x"] == np.arange(1000, dtype=np.float32) * np.float32(0.5)).all()
    del names["x"], names["each"]
    names["pinned"].close()
    names["stream"].close()
