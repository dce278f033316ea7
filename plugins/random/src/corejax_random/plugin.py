"""Hook implementations of the plugin. Discovery imports this module, so hooks import the rest when they run."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from corejax.extend import Primitive, hookimpl

if TYPE_CHECKING:
    from corejax.extend import Example


@hookimpl
def corejax_declare_settings() -> Mapping[str, tuple[Any, ...]]:
    """Declare the settings of generators and keys."""
    return {
        "default_prng_impl": ("threefry2x32", str, True),
        "threefry_partitionable": (True, _flag, True),
        "enable_custom_prng": (False, _flag, True),
        "legacy_prng_key": ("allow", _legacy, True),
        "debug_key_reuse": (False, _flag),
        "random_seed_offset": (0, _integer, True),
        "high_dynamic_range_gumbel": (False, _flag, True),
    }


def _flag(text: Any) -> bool:
    word = str(text).strip().lower()
    if word not in ("1", "true", "yes", "on", "0", "false", "no", "off", ""):
        raise ValueError(f"expected a flag, True or False, got {text!r}")
    return word in ("1", "true", "yes", "on")


def _integer(value: Any) -> int:
    try:
        return operator.index(int(value) if isinstance(value, str) else value)
    except (TypeError, ValueError):
        raise ValueError(f"random_seed_offset must be an integer, got {value!r}") from None


def _legacy(text: Any) -> str:
    if text not in ("allow", "warn", "error"):
        raise ValueError(f"legacy_prng_key must be allow, warn or error, got {text!r}")
    return str(text)


@hookimpl
def corejax_export_namespaces() -> Mapping[str, str]:
    """Export `corejax.random` and `corejax.experimental.key_reuse`."""
    return {"random": "corejax_random.api", "experimental.key_reuse": "corejax_random.reuse.api"}


@hookimpl
def corejax_export_names() -> Mapping[str, str]:
    """Export settings under JAX's names, the compiler's generators to `corejax.lax`, and random initializers."""
    settings = ("debug_key_reuse", "default_prng_impl", "enable_custom_prng", "legacy_prng_key")
    names = ("RandomAlgorithm", "rng_bit_generator", "rng_bit_generator_p", "rng_uniform", "rng_uniform_p")
    compilers = {f"lax.{name}": f"corejax_random.generators.bit_generator:{name}" for name in names}
    initializers = {f"nn.initializers.{name}": f"corejax_random.initializers:{name}" for name in _INITIALIZERS.split()}
    return (
        initializers
        | compilers
        | {name: f"corejax_random.settings:{name}" for name in (*settings, "threefry_partitionable")}
    )


_INITIALIZERS = """
    delta_orthogonal glorot_normal glorot_uniform he_normal he_uniform kaiming_normal kaiming_uniform lecun_normal
    lecun_uniform normal orthogonal truncated_normal uniform variance_scaling xavier_normal xavier_uniform
"""


@hookimpl
def corejax_register_primitives() -> None:
    """Import the primitives and their rules."""
    import corejax_random.distributions.random_between
    import corejax_random.distributions.random_gamma
    import corejax_random.generators.bit_generator
    import corejax_random.keys.primitives  # noqa: F401


@hookimpl
def corejax_register_rules(kind: str, primitive: Primitive | None) -> None:
    """Import the translations to StableHLO, which are needed only when a program is compiled."""
    if kind == "xla_translation":
        import corejax_random.translations  # noqa: F401


@hookimpl
def corejax_provide_examples(primitive: str) -> Sequence[Example]:
    """Return example applications of one primitive, on which its rules are checked."""
    from corejax_random.examples import examples_of

    return examples_of(primitive)


@hookimpl
def corejax_provide_checks() -> Mapping[str, str]:
    """Provide the check of all registered generators, which `corejax verify random_bits` runs."""
    return {"generators": "corejax_random.verification:GENERATORS"}
