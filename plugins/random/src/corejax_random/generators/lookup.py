"""Generators by name, by the dtype of their keys, or by default."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import config, load_everything
from corejax_random.generators import rbg, threefry  # noqa: F401  they register themselves
from corejax_random.generators.table import (
    PRNGImpl,
    PRNGSpec,
    generator_of,
    is_key_dtype,
    known_generators,
    register_generator,
)


def default_generator() -> PRNGImpl:
    """The one that the setting `default_prng_impl` names."""
    return by_name(config.default_prng_impl, "the setting default_prng_impl")


def by_name(name: str, what: str) -> PRNGImpl:
    """The generator of a name.

    Raises:
        ValueError: there is none; `what` says who asked.
    """
    known = known_generators()
    if name not in known:
        load_everything()  # plugins register generators with their primitives
    found = known.get(name)
    if found is None:
        there_are = ", ".join(sorted(map(repr, known)))
        raise ValueError(f"{what}: unrecognized PRNG implementation {name!r}; there are {there_are}")
    return found


def resolve(what: str, given: Any) -> PRNGImpl:
    """The generator that an argument `impl` or `dtype` means.

    Args:
        what: the function, for messages.
        given: None for the default, a name, a dtype of keys, a `PRNGSpec` or a `PRNGImpl`.

    Raises:
        TypeError: it is none of these.
        ValueError: no generator has the name.
    """
    if given is None:
        return default_generator()
    if isinstance(given, PRNGImpl):
        register_generator(given)
        return given
    if isinstance(given, PRNGSpec):
        return resolve(what, given.impl)
    if isinstance(given, np.dtype) and is_key_dtype(given):
        return generator_of(given)
    if isinstance(given, str):
        return by_name(given, what)
    raise TypeError(
        f"{what}: a generator is given by its name, 'threefry2x32' say, or by a dtype of keys; "
        f"got {given!r} of type {type(given).__name__}"
    )
