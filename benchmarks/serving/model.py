"""A perceptron, rows for it, and their right answers: in one file, which C++ reads too. Nothing here needs ftcuda."""

from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

MODELS = {"perceptron": (64, 512, 512, 10), "layer": (64, 10)}
TOLERANCE = 1e-3  # answers are about 1, and two rows' are as far apart; in float32 they are right to about 1e-6
FEW = 16  # rows for which a warp for each output is faster than tiles
TILE = 32  # rows and outputs, as in model.cu


class Model(NamedTuple):
    """A layer has weights of (outputs, inputs), and a bias. Answer n is the one to row n."""

    widths: tuple[int, ...]
    layers: list[tuple[np.ndarray, np.ndarray]]
    rows: np.ndarray
    answers: np.ndarray

    def of_thread(self, index: int, threads: int) -> tuple[np.ndarray, np.ndarray]:
        """A thread's own rows, and their answers: nobody else asks them."""
        size = len(self.rows) // threads
        mine = slice(index * size, (index + 1) * size)
        return self.rows[mine].copy(), self.answers[mine].copy()


def computed(layers, rows) -> np.ndarray:
    """By numpy, with doubles."""
    values = rows.astype(np.float64)
    for number, (weights, bias) in enumerate(layers, 1):
        values = values @ weights.T.astype(np.float64) + bias
        if number < len(layers):
            values = np.maximum(values, 0)
    return values.astype(np.float32)


def made(widths, rows: int, seed: int = 1) -> Model:
    random = np.random.default_rng(seed)
    layers = [
        (
            (random.standard_normal((outputs, inputs)) * np.sqrt(2 / inputs)).astype(np.float32),
            (random.standard_normal(outputs) / 8).astype(np.float32),
        )
        for inputs, outputs in pairwise(widths)
    ]
    x = random.standard_normal((rows, widths[0])).astype(np.float32)
    return Model(tuple(widths), layers, x, computed(layers, x))


def save(model: Model, path: Path) -> None:
    """Integers of 32 bits: how many widths, these, how many rows. Then floats: layers, rows and answers."""
    head = np.array([len(model.widths), *model.widths, len(model.rows)], np.int32)
    arrays = [array for layer in model.layers for array in layer]
    path.write_bytes(b"".join(each.tobytes() for each in (head, *arrays, model.rows, model.answers)))


def load(path: Path) -> Model:
    content = path.read_bytes()
    count = int(np.frombuffer(content, np.int32, 1)[0])
    *widths, rows = map(int, np.frombuffer(content, np.int32, count + 1, 4))
    floats, at = np.frombuffer(content, np.float32, offset=4 * (count + 2)), 0

    def take(*shape):
        nonlocal at
        at += (size := int(np.prod(shape)))
        return floats[at - size : at].reshape(shape).copy()

    layers = [(take(outputs, inputs), take(outputs)) for inputs, outputs in pairwise(widths)]
    return Model(tuple(widths), layers, take(rows, widths[0]), take(rows, widths[-1]))


def kernel_of(rows: int, outputs: int) -> tuple[str, tuple[int, int]]:
    """Which kernel of model.cu a layer is computed by, and its grid; batch_1.cpp has the same rule."""
    if rows <= FEW or outputs < TILE:
        return "few_rows", ((outputs + 7) // 8, rows)
    return "many_rows", ((outputs + TILE - 1) // TILE, (rows + TILE - 1) // TILE)


class WrongAnswerError(AssertionError):
    """A row's answer is not its own."""


def check(answers: list, expected: np.ndarray) -> None:
    """Looks at each of them, also if it is not a number."""
    found = np.concatenate(answers).reshape(expected.shape)
    right = np.abs(found - expected) <= TOLERANCE * (1 + np.abs(expected))
    if not right.all():
        place = int(np.argmin(right.reshape(-1, expected.shape[-1]).all(axis=1)))
        of = found.reshape(-1, expected.shape[-1])[place], expected.reshape(-1, expected.shape[-1])[place]
        raise WrongAnswerError(f"{(~right).sum()} numbers are wrong; row {place} has {of[0]}, and not {of[1]}")
