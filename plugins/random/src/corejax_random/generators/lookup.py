"""Generators by name, by the dtype of their keys, or by default."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import config, load_everything
from corejax_random.generators import rbg, threefry  # noqa: F401  both register generators
from corejax_random.generators.table import (
    PRNGImpl,
    PRNGSpec,
    generator_of,
    is_key_dtype,
    known_generators,
    register_generator,
)


def default_generator() -> PRNGImpl:
    """Return the generator that the setting `default_prng_impl` names."""
    return by_name(config.default_prng_impl, "the setting default_prng_impl")


def by_name(name: str, what: str) -> PRNGImpl:
    """Return a generator by name.

    Args:
        name: name of the generator.
        what: the function or setting that has the name, for messages.

    Raises:
        ValueError: if no generator has the name.
    """
    known = known_generators()
    if name not in known:
        load_everything()  # plugins register generators with their primitives
    generator = known.get(name)
    if generator is None:
        names = ", ".join(sorted(map(repr, known)))
        raise ValueError(f"{what}: unrecognized PRNG implementation {name!r}; there are {names}")
    return generator


def resolve(what: str, impl: Any) -> PRNGImpl:
    """Return the generator for an argument `impl` or `dtype`.

    Args:
        what: the function, for messages.
        impl: None for the default, a name, a dtype of keys, a `PRNGSpec` or a `PRNGImpl`.

    Raises:
        TypeError: if `impl` is none of these.
        ValueError: if no generator has the name.
    """
    if impl is None:
        return default_generator()
    if isinstance(impl, PRNGImpl):
        register_generator(impl)
        return impl
    if isinstance(impl, PRNGSpec):
        return resolve(what, impl.impl)
    if isinstance(impl, np.dtype) and is_key_dtype(impl):
        return generator_of(impl)
    if isinstance(impl, str):
        return by_name(impl, what)
    raise TypeError(
        f"{what}: a generator must be a name, such as 'threefry2x32', or a dtype of keys; "
        f"got {impl!r} of type {type(impl).__name__}"
    )
