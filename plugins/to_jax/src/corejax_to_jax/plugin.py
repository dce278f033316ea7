"""The plugin's hooks. jax is imported when a bridge is first used."""

from __future__ import annotations

from collections.abc import Mapping

from corejax.extend import Example, hookimpl


@hookimpl
def corejax_export_names() -> Mapping[str, str]:
    """Provide `corejax.to_jax` and `corejax.from_jax`."""
    return {"to_jax": "corejax_to_jax.to_jax:to_jax", "from_jax": "corejax_to_jax.from_jax:from_jax"}


@hookimpl
def corejax_register_primitives() -> None:
    """Register the primitive that calls a JAX function."""
    import corejax_to_jax.jax_call  # noqa: F401


@hookimpl
def corejax_provide_examples(primitive: str) -> list[Example]:
    """Provide calls of JAX programs, for checks of the rules."""
    if primitive != "jax.call":
        return []
    from corejax_to_jax.examples import jax_call_examples

    return jax_call_examples()


@hookimpl
def corejax_provide_checks() -> Mapping[str, str]:
    """Provide the check `jax` of `corejax verify`: a primitive has the same results in JAX as in corejax."""
    return {"jax": "corejax_to_jax.verification:JAX"}
