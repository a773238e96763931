#!/usr/bin/env bash
# The type checker, on a copy of the tree as it is installed: `shapes` within `implicit_geom`.
set -euo pipefail
cd "$(dirname "$0")/.."
tree=build/types
rm -rf "$tree"
mkdir -p "$tree"
cp -R implicit_geom "$tree"
cp -R shapes "$tree/implicit_geom"
cp pyproject.toml "$tree"
(cd "$tree" && "${1:-python3}" -m mypy --cache-dir ../types-cache)
