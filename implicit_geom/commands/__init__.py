"""The sub-commands of `implicit-geom`, one a file: `add` declares it, `main` runs it."""
