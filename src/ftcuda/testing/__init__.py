"""Tools for testing programs that share CUDA objects between threads."""

from ftcuda.testing.sequencer import Sequencer
from ftcuda.testing.together import together

__all__ = ["Sequencer", "together"]
