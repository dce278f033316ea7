"""Kernels in C++ that tests call: compiled once for all test processes and runs, and kept in `.pytest_cache`."""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent / "xla_backend" / "kernels.cc"
COMPILER = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
FLAGS = ["-O0", "-shared", "-fPIC", "-std=c++17"]


def load(config: pytest.Config) -> ctypes.CDLL:
    """The library; the test is skipped where no compiler is."""
    if COMPILER is None:
        pytest.skip("no C++ compiler here")
    from jaxlib import version

    from corejax import ffi

    about = (SOURCE.read_bytes(), COMPILER, FLAGS, version.__version__, platform.node())
    name = hashlib.sha256(repr(about).encode()).hexdigest()[:16]
    library = config.rootpath / ".pytest_cache" / "d" / f"kernels-{name}.so"
    if not library.exists():
        library.parent.mkdir(parents=True, exist_ok=True)
        part = library.with_suffix(f".{os.getpid()}")
        subprocess.run([COMPILER, *FLAGS, f"-I{ffi.include_dir()}", SOURCE, "-o", part], check=True)
        part.replace(library)  # other processes find all of it, or nothing
    return ctypes.CDLL(str(library))
