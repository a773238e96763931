"""`python -m implicit_geom`: the command line."""

import sys

from implicit_geom.commands.cli import main

if __name__ == "__main__":
    sys.exit(main())
