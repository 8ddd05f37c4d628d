"""The perceptron, the data, and the reference that every answer is compared with."""

from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent
LAYERS = (64, 128, 64, 10)
HELD_OUT = 397  # images that training never sees
# float32 sums of 128 products of numbers of order one: errors are far below this, margins between classes far above.
LOGIT_TOLERANCE = 1e-3


def load_digits() -> tuple[np.ndarray, np.ndarray]:
    """Returns images (1797, 64), float32 from 0 to 16, and labels (1797,), int64."""
    table = np.loadtxt(FOLDER / "data" / "digits.csv.gz", delimiter=",")
    return table[:, :64].astype(np.float32), table[:, 64].astype(np.int64)


def split(images: np.ndarray, labels: np.ndarray):
    """Returns ``(training images, training labels, held-out images, held-out labels)``, by a fixed shuffle."""
    order = np.random.default_rng(20_260_101).permutation(len(images))
    train, test = order[:-HELD_OUT], order[-HELD_OUT:]
    return images[train], labels[train], images[test], labels[test]


def load_weights() -> list[tuple[np.ndarray, np.ndarray]]:
    """Returns ``(weights, bias)`` of each layer, float32, weights with one row for each output."""
    stored = np.load(FOLDER / "weights.npz")
    return [(stored[f"weights{layer}"], stored[f"bias{layer}"]) for layer in range(len(LAYERS) - 1)]


def forward(images: np.ndarray, weights) -> np.ndarray:
    """Returns the logits (n, 10) in float64, the reference."""
    activation = images.astype(np.float64) / 16.0
    for layer, (matrix, bias) in enumerate(weights):
        activation = activation @ matrix.T.astype(np.float64) + bias
        if layer != len(weights) - 1:
            activation = np.maximum(activation, 0.0)
    return activation


def check_margins(logits: np.ndarray) -> None:
    """Raises SystemExit if rounding could swap the digits of an image."""
    ordered = np.sort(logits, axis=1)
    margin = float((ordered[:, -1] - ordered[:, -2]).min())
    if margin < 10 * LOGIT_TOLERANCE:
        raise SystemExit(f"two classes of one image are only {margin:.2g} apart: rounding could swap them; train again")
