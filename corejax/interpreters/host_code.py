"""What an impl rule does to operands of known types, as lines of Python: for programs that are written out."""

from __future__ import annotations

from typing import Any

import numpy as np


class HostCode:
    """Lines of Python that do what an impl rule does, for operands of known types.

    What `prepared=` gives of a rule may be one: a program that is written out has these lines in place of a call, and
    looks at nothing that they give. They give NumPy arrays of the promised types and write to no operand.

    Args:
        text: assigns `{out}`, of the operands `{0}`, `{1}` and so on, and of `names`, in braces too: `"{out} =
            {0}.reshape({shape})"`. The results of several are one `{out}`, a list of targets.
        scalar: whether the result, of rank 0, is a NumPy scalar of the promised dtype, and no array.
        names: values that the text names.
    """

    __slots__ = ("_function", "names", "scalar", "text")

    def __init__(self, text: str, /, *, scalar: bool = False, **names: Any) -> None:
        self.text = text
        self.scalar = scalar
        self.names = names
        self._function: Any = None

    def __call__(self, *operands: Any) -> Any:
        """The results for operands of the types that it is for, as arrays."""
        if self._function is None:
            given = [f"x{i}" for i in range(len(operands))]
            lines = self.text.format(*given, out="out", **{name: name for name in self.names}).splitlines()
            body = "\n".join(f"    {line}" for line in [*lines, "return out"])
            space = dict(self.names)
            exec(compile(f"def function({', '.join(given)}):\n{body}", "<host code>", "exec"), space)
            self._function = space["function"]
        out = self._function(*operands)
        return np.asarray(out) if self.scalar else out

    def __repr__(self) -> str:
        return f"HostCode({self.text!r})"
