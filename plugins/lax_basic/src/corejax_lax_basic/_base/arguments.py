"""Arguments that NumPy's functions have, and that mean nothing for arrays that do not change."""

from __future__ import annotations

from typing import Any

__all__ = ["ddof_of", "refuse_out"]


def refuse_out(name: str, out: Any) -> None:
    """Refuse NumPy's argument for the array to write to.

    Raises:
        NotImplementedError: it is not None. (Not a TypeError, after which NumPy's functions convert and try again.)
    """
    if out is not None:
        raise NotImplementedError(f"{name}: `out` has to be None, results are new arrays; take the result instead")


def ddof_of(name: str, ddof: float, correction: float | None) -> float:
    """What a variance subtracts from the number of elements, an argument of two names.

    Raises:
        ValueError: both are given.
    """
    if correction is None:
        return ddof
    if ddof != 0:
        raise ValueError(
            f"{name}: `ddof` and `correction` are two names of one argument, got {ddof!r} and {correction!r}"
        )
    return correction
