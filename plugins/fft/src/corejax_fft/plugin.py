"""The hooks that the plugin implements. Discovery imports this module, so the hooks import everything else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from corejax.extend import Primitive, hookimpl

if TYPE_CHECKING:
    from corejax.extend import Example


@hookimpl
def corejax_export_names() -> Mapping[str, str]:
    """Export the primitive and its function in `corejax.lax`."""
    return {f"lax.{name}": f"corejax_fft.fft:{name}" for name in ("FftType", "fft", "fft_p")}


@hookimpl
def corejax_export_namespaces() -> Mapping[str, str]:
    """Export `corejax.numpy.fft`."""
    return {"numpy.fft": "corejax_fft.numpy_fft"}


@hookimpl
def corejax_register_primitives() -> None:
    """Register the primitive with its rules."""
    import corejax_fft.fft  # noqa: F401


@hookimpl
def corejax_register_rules(kind: str, primitive: Primitive | None) -> None:
    """Register the translation, which is needed only for compilation."""
    if kind == "xla_translation":
        import corejax_fft.translations  # noqa: F401


@hookimpl
def corejax_provide_examples(primitive: str) -> list[Example]:
    """Provide applications of the primitive, for checks of its rules."""
    if primitive != "fft":
        return []
    from corejax_fft.examples import fft_examples

    return fft_examples()
