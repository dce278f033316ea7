"""The plugin's hooks. Discovery imports this module, so everything else is imported inside the hooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from corejax.extend import Primitive, hookimpl

if TYPE_CHECKING:
    from corejax.extend import Example


@hookimpl
def corejax_register_primitives() -> None:
    """Register the primitives of `corejax.lax.linalg` and those that they are built from."""
    import corejax_linalg.lax_linalg  # noqa: F401


@hookimpl
def corejax_register_rules(kind: str, primitive: Primitive | None) -> None:
    """Register translations, which are first needed when a program is compiled."""
    if kind == "xla_translation":
        import corejax_linalg.translations  # noqa: F401


@hookimpl
def corejax_export_namespaces() -> Mapping[str, str]:
    """Export `corejax.lax.linalg`, `corejax.numpy.linalg` and `corejax.scipy.linalg`."""
    return {
        "lax.linalg": "corejax_linalg.lax_linalg",
        "numpy.linalg": "corejax_linalg.numpy_linalg",
        "scipy.linalg": "corejax_linalg.scipy_linalg",
    }


@hookimpl
def corejax_export_names() -> Mapping[str, str]:
    """Export the functions of `corejax.numpy` itself that need decompositions."""
    return {
        "numpy.polyfit": "corejax_linalg.polynomials:polyfit",
        "numpy.roots": "corejax_linalg.polynomials:roots",
    }


@hookimpl
def corejax_declare_settings() -> Mapping[str, tuple[Any, Callable[[Any], Any]]]:
    """Declare `linalg_errors`: whether eager decompositions raise an error instead of returning NaN."""
    return {"linalg_errors": (False, _flag)}


def _flag(value: Any) -> bool:
    words = {"1": True, "true": True, "on": True, "yes": True, "0": False, "false": False, "off": False, "no": False}
    found = words.get(str(value).strip().lower())
    if found is None:
        raise ValueError(f"linalg_errors must be on or off, got {value!r}")
    return found


@hookimpl
def corejax_provide_examples(primitive: str) -> Sequence[Example]:
    """Return examples of a primitive, which are imported only to check rules."""
    from corejax_linalg.examples import examples_of

    return examples_of(primitive)
