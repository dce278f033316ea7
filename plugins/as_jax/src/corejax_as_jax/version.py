"""The version of JAX that is provided, and the path of its metadata."""

from __future__ import annotations

from pathlib import Path

JAX_VERSION = "0.10.2"
"""The version of JAX that is emulated."""

PATH = Path(__file__).parent / "path"
"""A directory for PYTHONPATH with a package `jax` and its metadata."""
