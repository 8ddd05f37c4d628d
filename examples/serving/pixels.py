"""What requests carry: 64 numbers from 0 to 16, as JSON or as bytes."""

import json

import numpy as np

from examples.inference.model import LAYERS

COUNT = LAYERS[0]
WHITEST = 16
RAW = "application/octet-stream"


class BadRequestError(ValueError):
    """The client's mistake, in words for the client."""


def pixels_of(body: bytes, content_type: str | None) -> np.ndarray:
    """The image (64,), float32, that a request carries; bytes are float32, the lowest byte first.

    Raises
    ------
    BadRequestError
        The body is something else.
    """
    pixels = from_bytes(body) if content_type == RAW else from_json(body)
    if not ((pixels >= 0) & (pixels <= WHITEST)).all():  # a NaN is neither
        raise BadRequestError(f"a pixel is not from 0 to {WHITEST}")
    return pixels


def from_bytes(body: bytes) -> np.ndarray:
    """An image of float32."""
    if len(body) != 4 * COUNT:
        raise BadRequestError(f"{len(body)} bytes are not {COUNT} numbers of float32")
    return np.frombuffer(body, "<f4").astype(np.float32)


def from_json(body: bytes) -> np.ndarray:
    """An image of a list of numbers."""
    try:
        given = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadRequestError(f"the body is no JSON: {error}") from error
    if not isinstance(given, list) or len(given) != COUNT:
        raise BadRequestError(f"the body is no list of {COUNT} numbers")
    if not all(type(each) in (int, float) for each in given):
        raise BadRequestError("the list has more than numbers")
    try:
        return np.array(given, np.float32)
    except OverflowError as error:
        raise BadRequestError(f"a number is too large: {error}") from error
