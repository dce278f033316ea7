"""`HostCode`, an impl rule specialised to types of operands as lines of Python, for generated functions."""

from __future__ import annotations

from typing import Any

import numpy as np


class HostCode:
    """Lines of Python that compute what an impl rule computes, for operands of known types.

    The function in a rule's flag `prepared=` may return one. The engine then inserts the lines into the function that
    it generates for a program, instead of a call of the rule, and does not check their results. The lines must compute
    NumPy arrays of the inferred types and must not write to operands.

    Args:
        text: an assignment to `{out}` from the operands `{0}`, `{1}`, ... and from `names`, which are in braces as
            well: `"{out} = {0}.reshape({shape})"`. For several results, `{out}` is a list of targets.
        scalar: whether the result is a NumPy scalar rather than an array of rank 0.
        names: values that the text refers to.
    """

    __slots__ = ("_function", "names", "scalar", "text")

    def __init__(self, text: str, /, *, scalar: bool = False, **names: object) -> None:
        self.text = text
        self.scalar = scalar
        self.names = names
        self._function: Any = None

    def __call__(self, *operands: object) -> Any:
        """Run the lines on operands and return the results as arrays."""
        if self._function is None:
            arguments = [f"x{i}" for i in range(len(operands))]
            lines = self.text.format(*arguments, out="out", **{name: name for name in self.names}).splitlines()
            body = "\n".join(f"    {line}" for line in [*lines, "return out"])
            namespace = dict(self.names)
            exec(compile(f"def function({', '.join(arguments)}):\n{body}", "<host code>", "exec"), namespace)
            self._function = namespace["function"]
        out = self._function(*operands)
        return np.asarray(out) if self.scalar else out

    def __repr__(self) -> str:
        return f"HostCode({self.text!r})"
