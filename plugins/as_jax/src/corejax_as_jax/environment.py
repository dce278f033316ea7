"""`jax.print_environment_info`: which JAX is provided, and by what."""

from __future__ import annotations

import corejax
from corejax_as_jax.version import JAX_VERSION


def print_environment_info(return_string: bool = False) -> str | None:
    """Print versions and devices, for reports of faults.

    Args:
        return_string: whether the text is returned, and not printed.
    """
    text = f"jax:       {JAX_VERSION}, provided by corejax-as-jax\n{corejax.print_environment_info(return_string=True)}"
    if return_string:
        return text
    print(text)
    return None
