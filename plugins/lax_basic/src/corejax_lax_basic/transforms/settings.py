"""Context managers for settings, under JAX's names; `corejax.config.override` takes any settings."""

from __future__ import annotations

from corejax.extend import config
from corejax.extend.messages import Restoring


def enable_x64(new_val: bool = True) -> Restoring:
    """Use 64 bits as the default precision, or 32, in a `with` block or a decorated function.

    The same as `config.override(default_dtype_bits=64)`.
    """
    return config.override(enable_x64=new_val)


def enable_checks(new_val: bool = True) -> Restoring:
    """Type-check every program that a transformation creates, in a `with` block or a decorated function.

    The same as `config.override(check_jaxprs=new_val)`.
    """
    return config.override(check_jaxprs=new_val)


def disable_jit(disable: bool = True) -> Restoring:
    """Evaluate jitted functions one operation at a time, in a `with` block or a decorated function.

    The same as `config.override(disable_jit=disable)`.
    """
    return config.override(disable_jit=disable)


def check_tracer_leaks(new_val: bool = True) -> Restoring:
    """Raise an error if a tracer is held after its trace, in a `with` block or a decorated function.

    The same as `config.override(check_tracer_leaks=new_val)`.
    """
    return config.override(check_tracer_leaks=new_val)


def checking_leaks() -> Restoring:
    """Raise an error if a tracer is held after its trace, in a `with` block or a decorated function.

    The same as `config.override(check_tracer_leaks=True)`.
    """
    return config.override(check_tracer_leaks=True)


def debug_nans(new_val: bool = True) -> Restoring:
    """Raise an error if a result has a NaN, in a `with` block or a decorated function.

    The same as `config.override(debug_nans=new_val)`.
    """
    return config.override(debug_nans=new_val)


def debug_infs(new_val: bool = True) -> Restoring:
    """Raise an error if a result has an infinity, in a `with` block or a decorated function.

    The same as `config.override(debug_infs=new_val)`.
    """
    return config.override(debug_infs=new_val)


def numpy_dtype_promotion(new_val: str) -> Restoring:
    """Allow or forbid implicit promotion of dtypes, in a `with` block or a decorated function.

    The same as `config.override(numpy_dtype_promotion=new_val)`.
    """
    return config.override(numpy_dtype_promotion=new_val)


def numpy_rank_promotion(new_val: str) -> Restoring:
    """Allow, warn of or forbid implicit promotion of ranks, in a `with` block or a decorated function.

    The same as `config.override(numpy_rank_promotion=new_val)`.
    """
    return config.override(numpy_rank_promotion=new_val)
