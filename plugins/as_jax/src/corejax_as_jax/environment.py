"""`jax.print_environment_info`: the emulated version of JAX, and the environment of corejax."""

from __future__ import annotations

import corejax
from corejax_as_jax.version import JAX_VERSION


def print_environment_info(return_string: bool = False) -> str | None:
    """Print versions and devices, for bug reports.

    Args:
        return_string: whether to return the text instead of printing it.
    """
    text = f"jax:       {JAX_VERSION}, provided by corejax-as-jax\n{corejax.print_environment_info(return_string=True)}"
    if return_string:
        return text
    print(text)
    return None
