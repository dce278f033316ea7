"""What the plugin contributes. Discovery imports this module, so everything else is imported inside the hooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from corejax.extend import Example, Primitive, hookimpl


@hookimpl
def corejax_register_primitives() -> None:
    """All primitives are names of `corejax.lax.linalg`, or what these are made of."""
    import corejax_linalg.lax_linalg  # noqa: F401


@hookimpl
def corejax_register_rules(kind: str, primitive: Primitive | None) -> None:
    """Translations lie apart: nothing needs them until something is compiled."""
    if kind == "xla_translation":
        import corejax_linalg.translations  # noqa: F401


@hookimpl
def corejax_export_namespaces() -> Mapping[str, str]:
    """`corejax.lax.linalg`, and what is made of it for `corejax.numpy` and `corejax.scipy`."""
    return {
        "lax.linalg": "corejax_linalg.lax_linalg",
        "numpy.linalg": "corejax_linalg.numpy_linalg",
        "scipy.linalg": "corejax_linalg.scipy_linalg",
    }


@hookimpl
def corejax_export_names() -> Mapping[str, str]:
    """What of `corejax.numpy` itself needs decompositions."""
    return {
        "numpy.polyfit": "corejax_linalg.polynomials:polyfit",
        "numpy.roots": "corejax_linalg.polynomials:roots",
    }


@hookimpl
def corejax_declare_settings() -> Mapping[str, tuple[Any, Callable[[Any], Any]]]:
    """`linalg_errors`: whether eager decompositions raise an error where they would give NaN."""
    return {"linalg_errors": (False, _flag)}


def _flag(value: Any) -> bool:
    words = {"1": True, "true": True, "on": True, "yes": True, "0": False, "false": False, "off": False, "no": False}
    found = words.get(str(value).strip().lower())
    if found is None:
        raise ValueError(f"linalg_errors is on or off, got {value!r}")
    return found


@hookimpl
def corejax_provide_examples(primitive: str) -> Sequence[Example]:
    """Data that nothing imports unless somebody checks the rules."""
    from corejax_linalg.examples import examples_of

    return examples_of(primitive)
