#!/usr/bin/env bash
# Lint, types and tests, in an environment of their own (.venv-test, made on first use).
set -euo pipefail
cd "$(dirname "$0")/.."
venv=.venv-test
if [ ! -x "$venv/bin/python" ]; then
    python3 -m venv "$venv"
fi
# installed again only when the requirements or the native code changed
what="$(cat pyproject.toml setup.py implicit_geom/engine/cpp/* | sha256sum)"
if [ "$what" != "$(cat "$venv/installed" 2>/dev/null)" ]; then
    "$venv/bin/python" -m pip install -q -e '.[dev]'
    echo "$what" > "$venv/installed"
fi
# the matrices are small: one BLAS thread is faster than several, and leaves the cores to the tests
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MPLBACKEND=Agg
"$venv/bin/ruff" check .
"$venv/bin/ruff" format --check .
bash tests/types.sh "$PWD/$venv/bin/python"
"$venv/bin/pytest" -n 2 -q "$@"
