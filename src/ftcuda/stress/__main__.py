"""``python -m ftcuda.stress my_hazard.py``: races hazards of yours."""

import sys

from ftcuda.stress.command import main
from ftcuda.stress.program import Program

if __name__ == "__main__":
    sys.exit(main(Program("ftcuda.stress")))
