"""``python -m stress``: races ftcuda's objects on purpose. Every failure prints the command that repeats it."""

import sys

from ftcuda.stress.command import main
from stress.program import OURS

if __name__ == "__main__":
    sys.exit(main(OURS))
