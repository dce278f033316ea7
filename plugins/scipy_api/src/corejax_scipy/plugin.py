"""The plugin's hooks. Discovery imports this module, so everything else is imported inside the hooks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from corejax.extend import hookimpl

if TYPE_CHECKING:
    from corejax.extend import Example


@hookimpl
def corejax_export_namespaces() -> Mapping[str, str]:
    """Export `corejax.scipy` and the namespaces below it; another plugin exports `scipy.linalg`."""
    below = (
        "cluster", "cluster.vq", "fft", "integrate", "interpolate", "ndimage", "optimize", "signal", "sparse",
        "sparse.linalg", "spatial", "spatial.transform", "special", "stats",
    )  # fmt: skip
    return {"scipy": "corejax_scipy.scipy", **{f"scipy.{name}": f"corejax_scipy.{name}" for name in below}}


@hookimpl
def corejax_register_primitives() -> None:
    """Register the primitives of special functions, with their rules."""
    import corejax_scipy.special.bessel
    import corejax_scipy.special.beta_functions
    import corejax_scipy.special.error_functions
    import corejax_scipy.special.gamma_functions
    import corejax_scipy.special.hypergeometric
    import corejax_scipy.special.integrals
    import corejax_scipy.special.logarithms  # noqa: F401


@hookimpl
def corejax_add_cli_commands(group: Any) -> None:
    """Add `corejax accuracy`, which measures errors of special functions in units in the last place."""
    from corejax_scipy.accuracy.command import accuracy

    group.add_command(accuracy)


@hookimpl
def corejax_provide_examples(primitive: str) -> list[Example]:
    """Return examples of a primitive, from which checks of its rules start."""
    from corejax_scipy.special.examples import NAMED

    return NAMED[primitive]() if primitive in NAMED else []
