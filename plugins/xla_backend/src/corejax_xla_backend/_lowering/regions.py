"""Regions of operations, as text that can be rewritten to thread the token of ordered effects.

Ordered effects happen in the order of the program's equations, because each callback takes a token that the one before
it returned. The token is a boolean without meaning, so that XLA sees nothing but operands and results. A `while`
carries the token, the branches of a `case` capture it from outside and return it, private functions take and return it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from corejax.extend import ShapedArray
from corejax_xla_backend._lowering.types import Value, tensor_type

TOKEN = ShapedArray((), np.dtype(np.bool_))


class Region(str):
    """A region: a string with the region's text as it is without ordered effects.

    Attributes:
        origins: origins of its results, as in `Value`.
        token_out: the token after its last ordered effect, or None.
    """

    __slots__ = ("_args", "_lines", "_outs", "_token_in", "origins", "token_out")

    origins: int
    token_out: Value | None
    _args: Sequence[Value]
    _lines: Sequence[str]
    _outs: Sequence[Value]
    _token_in: Value

    def __new__(
        cls,
        args: Sequence[Value],
        lines: Sequence[str],
        outs: Sequence[Value],
        token_in: Value,
        token_out: Value | None,
        returns: str = "stablehlo",
    ) -> Region:
        """Return the region that computes `outs` by `lines`; its ordered effects start with `token_in`."""
        region = super().__new__(cls, _text(args, lines, outs, returns))
        region._args, region._lines, region._outs = args, lines, outs
        region._token_in, region.token_out = token_in, token_out
        region.origins = 0
        for out in outs:
            region.origins |= out.origins
        return region

    def with_token_argument(self, *, returns_token: bool) -> str:
        """Return the text with the token as last argument and, if it is returned, as last result (for `while`)."""
        more = [self.token_out or self._token_in] if returns_token else []
        return _text([*self._args, self._token_in], self._lines, [*self._outs, *more])

    def with_captured_token(self, token: Value) -> str:
        """Return the text with the token captured from outside and returned as last result (for branches)."""
        copy = f'{self._token_in.name} = "stablehlo.convert"({token.name}) : (tensor<i1>) -> tensor<i1>'
        return _text(self._args, [copy, *self._lines], [*self._outs, self.token_out or self._token_in])


def _text(args: Sequence[Value], lines: Sequence[str], outs: Sequence[Value], returns: str = "stablehlo") -> str:
    """Return the text of a region that ends with the `return` of a dialect."""
    signature = ", ".join(f"{a.name}: {tensor_type(a.aval)}" for a in args)
    head = f"^bb0({signature}):\n      " if args else ""
    names, types = ", ".join(o.name for o in outs), ", ".join(tensor_type(o.aval) for o in outs)
    returned = f'"{returns}.return"({names}) : ({types}) -> ()'
    return "{\n      " + head + "\n      ".join([*lines, returned]) + "\n    }"
