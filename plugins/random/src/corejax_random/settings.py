"""Settings of keys as context managers, under JAX's names. Each is also a decorator."""

from __future__ import annotations

from corejax.extend import config
from corejax.extend.messages import Restoring

__all__ = ["debug_key_reuse", "default_prng_impl", "enable_custom_prng", "legacy_prng_key", "threefry_partitionable"]


def debug_key_reuse(new_val: bool = True) -> Restoring:
    """Override the setting `debug_key_reuse`: raise an error if a key is used twice."""
    return config.override(debug_key_reuse=new_val)


def default_prng_impl(new_val: str) -> Restoring:
    """Override the setting `default_prng_impl`: the generator of new keys, by name."""
    return config.override(default_prng_impl=new_val)


def enable_custom_prng(new_val: bool = True) -> Restoring:
    """Override the setting `enable_custom_prng`: return typed keys from `PRNGKey`."""
    return config.override(enable_custom_prng=new_val)


def legacy_prng_key(new_val: str) -> Restoring:
    """Override the setting `legacy_prng_key`: "allow", "warn" or "error" for raw words as keys."""
    return config.override(legacy_prng_key=new_val)


def threefry_partitionable(new_val: bool = True) -> Restoring:
    """Override the setting `threefry_partitionable`: generate bits that depend only on the key and the position."""
    return config.override(threefry_partitionable=new_val)
