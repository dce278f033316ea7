#!/usr/bin/env bash
# Install this checkout beside a Python that has jaxlib with NVIDIA's plugin, and run tools/gpu/check.py with it:
# run.sh [PYTHON [WHEELS [ARGUMENTS OF check.py ...]]]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
python=${1:-python3}
wheels=${2:-}
environment=$(mktemp -d)/gpu
"$python" -m venv --system-site-packages "$environment"
# The interpreter may itself be a virtual environment, whose packages --system-site-packages does not show.
"$python" -c 'import site; print(*site.getsitepackages(), sep="\n")' > "$environment/parent.txt"
site=$("$environment/bin/python" -c 'import site; print(site.getsitepackages()[0])')
cp "$environment/parent.txt" "$site/parent.pth"
options=(--quiet --disable-pip-version-check)
if [ -n "$wheels" ]; then
    options+=(--no-index --find-links "$wheels")
fi
"$environment/bin/python" -m pip install "${options[@]}" \
    click importlib-metadata ml_dtypes opt_einsum optree platformdirs pluggy rich 'setuptools>=77'
packages=(.)
for folder in plugins/*/; do
    case $folder in *to_jax/ | *to_torch/ | *as_jax/) ;; *) packages+=("$folder") ;; esac
done
editable=()
for package in "${packages[@]}"; do editable+=(--editable "$package"); done
"$environment/bin/python" -m pip install "${options[@]}" --no-deps --no-build-isolation "${editable[@]}"
"$environment/bin/python" tools/gpu/check.py "${@:3}"
