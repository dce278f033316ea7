"""Regions of operations, as text that may still be given the token of ordered effects.

Ordered effects of a program happen in the order of its equations, since each call back takes a token that the one
before it gave: a boolean without meaning, so that XLA sees nothing but operands and results. A `while` carries the
token, the branches of a `case` see it around them and give it back, private functions take and give it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from corejax.extend import ShapedArray
from corejax_xla_backend._lowering.types import Value, tensor_type

TOKEN = ShapedArray((), np.dtype(np.bool_))


class Region(str):
    """A region's text, of one without ordered effects.

    Attributes:
        origins: what its results are computed from, as of values.
        token_out: the token after its last ordered effect; None where there are none.
    """

    __slots__ = ("_args", "_lines", "_outs", "_token_in", "origins", "token_out")

    origins: int
    token_out: Value | None

    def __new__(
        cls,
        args: Sequence[Value],
        lines: Sequence[str],
        outs: Sequence[Value],
        token_in: Value,
        token_out: Value | None,
        returns: str = "stablehlo",
    ) -> Region:
        """The region that computes `outs` by `lines`, where ordered effects begin with `token_in`."""
        region = super().__new__(cls, _text(args, lines, outs, returns))
        region._args, region._lines, region._outs = args, lines, outs
        region._token_in, region.token_out = token_in, token_out
        region.origins = 0
        for out in outs:
            region.origins |= out.origins
        return region

    def carrying(self, *, gives: bool) -> str:
        """With the token as its last argument and, if it gives it, as its last result: regions of `while`."""
        more = [self.token_out or self._token_in] if gives else []
        return _text([*self._args, self._token_in], self._lines, [*self._outs, *more])

    def seeing(self, token: Value) -> str:
        """With the token as its last result, from the one around it: branches."""
        same = f'{self._token_in.name} = "stablehlo.convert"({token.name}) : (tensor<i1>) -> tensor<i1>'
        return _text(self._args, [same, *self._lines], [*self._outs, self.token_out or self._token_in])


def _text(args: Sequence[Value], lines: Sequence[str], outs: Sequence[Value], returns: str = "stablehlo") -> str:
    signature = ", ".join(f"{a.name}: {tensor_type(a.aval)}" for a in args)
    head = f"^bb0({signature}):\n      " if args else ""
    names, types = ", ".join(o.name for o in outs), ", ".join(tensor_type(o.aval) for o in outs)
    returned = f'"{returns}.return"({names}) : ({types}) -> ()'
    return "{\n      " + head + "\n      ".join([*lines, returned]) + "\n    }"
