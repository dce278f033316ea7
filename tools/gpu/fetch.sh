#!/usr/bin/env bash
# Download the wheels that tools/gpu/run.sh needs on a machine without a network: fetch.sh FOLDER PYTHON_VERSION [cuda13]
set -euo pipefail
folder=$1 version=$2 cuda=${3:-}
download() {
    python3 -m pip download --quiet --dest "$folder" --only-binary=:all: --python-version "$version" \
        --platform manylinux_2_28_x86_64 --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 "$@"
}
download click importlib-metadata ml_dtypes opt_einsum optree platformdirs pluggy rich 'setuptools>=77'
if [ -n "$cuda" ]; then
    download "jax[$cuda]" scipy
fi
ls "$folder" | wc -l
