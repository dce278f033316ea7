"""Context managers for settings, under JAX's names; `corejax.config.override` takes any settings."""

from __future__ import annotations

from corejax.extend import config
from corejax.extend.messages import Restoring


def enable_x64(new_val: bool = True) -> Restoring:
    """Return `config.override(default_dtype_bits=64)`, or 32: a context manager and decorator."""
    return config.override(enable_x64=new_val)


def enable_checks(new_val: bool = True) -> Restoring:
    """Return `config.override(check_jaxprs=...)`: a context manager and decorator."""
    return config.override(check_jaxprs=new_val)


def disable_jit(disable: bool = True) -> Restoring:
    """Return `config.override(disable_jit=...)`: a context manager and decorator."""
    return config.override(disable_jit=disable)


def check_tracer_leaks(new_val: bool = True) -> Restoring:
    """Return `config.override(check_tracer_leaks=...)`: a context manager and decorator."""
    return config.override(check_tracer_leaks=new_val)


def checking_leaks() -> Restoring:
    """Return `config.override(check_tracer_leaks=True)`: a context manager and decorator."""
    return config.override(check_tracer_leaks=True)


def debug_nans(new_val: bool = True) -> Restoring:
    """Return `config.override(debug_nans=...)`: a context manager and decorator."""
    return config.override(debug_nans=new_val)


def debug_infs(new_val: bool = True) -> Restoring:
    """Return `config.override(debug_infs=...)`: a context manager and decorator."""
    return config.override(debug_infs=new_val)


def numpy_dtype_promotion(new_val: str) -> Restoring:
    """Return `config.override(numpy_dtype_promotion=...)`: a context manager and decorator."""
    return config.override(numpy_dtype_promotion=new_val)


def numpy_rank_promotion(new_val: str) -> Restoring:
    """Return `config.override(numpy_rank_promotion=...)`: a context manager and decorator."""
    return config.override(numpy_rank_promotion=new_val)
