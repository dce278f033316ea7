"""`corejax.scipy.cluster.vq`: vector quantisation."""

from __future__ import annotations

from typing import Any

import corejax.numpy as _jnp
from corejax_scipy._arguments import reals as _reals

__all__ = ["vq"]


def vq(obs: Any, code_book: Any, check_finite: bool = True) -> tuple[Any, Any]:
    """Find the nearest code of each observation.

    Args:
        obs: observations in rows, or numbers.
        code_book: codes in rows of the same length, or numbers.
        check_finite: ignored.

    Returns:
        `(index, distance)` of each observation's nearest code; the first one if several are equally near.

    Raises:
        TypeError: an argument is not an array.
        ValueError: the numbers of axes differ or are neither 1 nor 2, the rows have different lengths, or there are no
            codes.
    """
    obs, codes = _reals("vq", obs, code_book)
    if obs.ndim != codes.ndim or obs.ndim not in (1, 2):
        raise ValueError(
            f"vq: obs and code_book must both have 1 or 2 axes, got {obs.aval.str_short()} and {codes.aval.str_short()}"
        )
    if obs.ndim == 1:
        obs, codes = obs[:, None], codes[:, None]
    if obs.shape[1] != codes.shape[1] or not codes.shape[0]:
        raise ValueError(
            f"vq: code_book must have at least one row, of the length {obs.shape[1]} of obs, got "
            f"{codes.aval.str_short()}"
        )
    squares = _jnp.sum(_jnp.square(obs[:, None] - codes[None]), axis=-1)
    index = _jnp.argmin(squares, axis=-1)
    return index, _jnp.sqrt(_jnp.take_along_axis(squares, index[:, None], axis=-1)[:, 0])
