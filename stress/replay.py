"""``python -m stress.replay``: runs the same seeds in two processes and compares the traces of their interleavings."""

import sys

from ftcuda.stress.replay import main
from stress.program import OURS

if __name__ == "__main__":
    sys.exit(main(OURS, ["launches", "close", "exclusive", "shared_buffer"]))
