"""The JAX that is provided, and where its metadata lies."""

from __future__ import annotations

from pathlib import Path

JAX_VERSION = "0.10.2"
"""The version of JAX whose names and habits are provided."""

PATH = Path(__file__).parent / "path"
"""A directory for PYTHONPATH with a package `jax` and its metadata."""
