"""The harness with the hazards of ftcuda itself."""

from ftcuda.stress.program import Program
from stress.environment import Environment

OURS = Program("stress", Environment, hazards="stress.hazards")
