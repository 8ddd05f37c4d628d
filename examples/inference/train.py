"""Trains the perceptron of the example with numpy: ``python -m examples.inference.train`` writes weights.npz."""

import itertools

import numpy as np

from examples.inference.model import FOLDER, LAYERS, forward, load_digits, split

EPOCHS = 60
BATCH = 32
RATE = 1e-3


def initial_weights(random: np.random.Generator) -> list[list[np.ndarray]]:
    return [
        [random.normal(0.0, np.sqrt(2.0 / inputs), (outputs, inputs)), np.zeros(outputs)]
        for inputs, outputs in itertools.pairwise(LAYERS)
    ]


def gradients(images: np.ndarray, labels: np.ndarray, weights) -> list[list[np.ndarray]]:
    """Returns the gradient of the mean cross-entropy, layer by layer."""
    activations = [images / 16.0]
    for layer, (matrix, bias) in enumerate(weights):
        sums = activations[-1] @ matrix.T + bias
        activations.append(np.maximum(sums, 0.0) if layer != len(weights) - 1 else sums)
    logits = activations[-1] - activations[-1].max(axis=1, keepdims=True)
    error = np.exp(logits)
    error /= error.sum(axis=1, keepdims=True)
    error[np.arange(len(labels)), labels] -= 1.0
    error /= len(labels)
    result = []
    for layer in reversed(range(len(weights))):
        result.append([error.T @ activations[layer], error.sum(axis=0)])
        error = (error @ weights[layer][0]) * (activations[layer] > 0.0)
    return result[::-1]


def train(images: np.ndarray, labels: np.ndarray) -> list[list[np.ndarray]]:
    """Adam (Kingma and Ba, 2015) with its usual constants."""
    random = np.random.default_rng(7)
    weights = initial_weights(random)
    first = [[np.zeros_like(array) for array in layer] for layer in weights]
    second = [[np.zeros_like(array) for array in layer] for layer in weights]
    step = 0
    for _ in range(EPOCHS):
        order = random.permutation(len(images))
        for begin in range(0, len(order), BATCH):
            batch = order[begin : begin + BATCH]
            step += 1
            for layer, layer_gradients in enumerate(gradients(images[batch], labels[batch], weights)):
                for index, gradient in enumerate(layer_gradients):
                    first[layer][index] = 0.9 * first[layer][index] + 0.1 * gradient
                    second[layer][index] = 0.999 * second[layer][index] + 0.001 * gradient**2
                    mean = first[layer][index] / (1 - 0.9**step)
                    variance = second[layer][index] / (1 - 0.999**step)
                    weights[layer][index] = weights[layer][index] - RATE * mean / (np.sqrt(variance) + 1e-8)
    return weights


def main() -> None:
    images, labels, test_images, test_labels = split(*load_digits())
    weights = [[array.astype(np.float32) for array in layer] for layer in train(images.astype(np.float64), labels)]
    accuracy = np.mean(forward(test_images, weights).argmax(axis=1) == test_labels)
    arrays = {}
    for layer, (matrix, bias) in enumerate(weights):
        arrays[f"weights{layer}"] = matrix
        arrays[f"bias{layer}"] = bias
    np.savez(FOLDER / "weights.npz", **arrays)
    print(f"accuracy on {len(test_labels)} held-out images: {accuracy:.4f}")


if __name__ == "__main__":
    main()
