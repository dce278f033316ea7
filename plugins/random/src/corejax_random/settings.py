"""Settings of keys as context managers, under JAX's names."""

from __future__ import annotations

from corejax.extend import config
from corejax.extend.messages import Restoring

__all__ = ["debug_key_reuse", "default_prng_impl", "enable_custom_prng", "legacy_prng_key", "threefry_partitionable"]


def debug_key_reuse(new_val: bool = True) -> Restoring:
    """`config.override(debug_key_reuse=...)`: a context manager and decorator; keys that are used twice are refused."""
    return config.override(debug_key_reuse=new_val)


def default_prng_impl(new_val: str) -> Restoring:
    """`config.override(default_prng_impl=...)`: a context manager and decorator; the generator of new keys, by name."""
    return config.override(default_prng_impl=new_val)


def enable_custom_prng(new_val: bool = True) -> Restoring:
    """`config.override(enable_custom_prng=...)`: a context manager and decorator; `PRNGKey` gives typed keys."""
    return config.override(enable_custom_prng=new_val)


def legacy_prng_key(new_val: str) -> Restoring:
    """`config.override(legacy_prng_key=...)`: a context manager and decorator; "allow", "warn" or "error"."""
    return config.override(legacy_prng_key=new_val)


def threefry_partitionable(new_val: bool = True) -> Restoring:
    """`config.override(threefry_partitionable=...)`: a context manager and decorator; which bits threefry makes."""
    return config.override(threefry_partitionable=new_val)
