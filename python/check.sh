#!/usr/bin/env bash
# Installs the package in a clean virtual environment, and runs its tests, its doctests and its examples there. Ends with 77 if Python 3.10
# or a package from the registry cannot be had.
#
#   HEADTIME=target/release/headtime python/check.sh
#
# HEADTIME names the program whose output the package has to equal; by default a release build.
set -euo pipefail
cd "$(dirname "$0")/.."
python3 -c 'import sys, venv; sys.exit(sys.version_info < (3, 10))' || { echo 'Python 3.10 with venv is missing' >&2; exit 77; }
if [ -z "${HEADTIME:-}" ]; then
    cargo build --release --quiet
    HEADTIME=${CARGO_TARGET_DIR:-target}/release/headtime
fi
HEADTIME=$(realpath "$HEADTIME")
export HEADTIME
# By default the environment and the build's files go away at the end.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
PATH=$work/venv/bin:$PATH
pip install --quiet maturin pytest pyarrow tqdm submitit 'fsspec[http]' ray nbclient ipykernel matplotlib || exit 77
# The crate is none of the workspace, so its licences are checked here.
host=$(rustc -vV | sed -n 's/^host: //p')
cargo metadata --locked --manifest-path python/Cargo.toml --filter-platform "$host" --format-version 1 | .ci/dependencies.sh --licences
pip install --quiet ./python
cd "$work" # so that nothing is imported from the source
python - <<'EOF'
import headtime

print("headtime", headtime.__version__, "in", headtime.__path__[0])
EOF
python -m pytest --quiet -p no:cacheprovider "$OLDPWD/python/tests"
python "$OLDPWD/python/examples/compare.py"
python "$OLDPWD/python/examples/sweep_on_ray.py"
python "$OLDPWD/python/examples/fleet.py" 3 1
for notebook in "$OLDPWD"/python/notebooks/*.ipynb; do
    echo "notebook $(basename "$notebook")"
    cp "$notebook" . && jupyter execute "$(basename "$notebook")"
done
