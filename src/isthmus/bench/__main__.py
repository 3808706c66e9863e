"""`python -m isthmus.bench` is `isthmus bench`, also under mpiexec."""

import sys

from ..cli import main

if __name__ == "__main__":
    main(["bench", *sys.argv[1:]])
