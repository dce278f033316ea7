"""The state of a function under construction, and the methods that the parts of a translation context share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from corejax.extend import ShapedArray
from corejax_xla_backend._lowering.module import ModuleBuilder
from corejax_xla_backend._lowering.regions import TOKEN
from corejax_xla_backend._lowering.types import Value


class Function:
    """The base of `Placing` and `Inlining`, whose methods `TranslationContext` joins.

    Attributes:
        module: the module under construction.
        lines: the function's operations so far.
        platform: the platform to compile for.
        mark: reference to the location of the next operations.
        scope: the path of calls and named scopes around the next operations.
        source: the user's line of the equation that is being lowered.
    """

    __slots__ = (
        "_constants",
        "_counter",
        "_origin_bits",
        "_token",
        "lines",
        "mark",
        "module",
        "platform",
        "scope",
        "source",
    )

    def __init__(
        self,
        module: ModuleBuilder,
        counter: list[int] | None = None,
        mark: str = "",
        scope: tuple[str, ...] = (),
        origin_bits: int = 2,
    ) -> None:
        self.module = module
        self.platform = module.platform
        self.lines: list[str] = []
        self.mark = mark
        self.scope = scope
        self.source: Any = None
        self._counter = [0] if counter is None else counter
        self._origin_bits = origin_bits
        self._constants: dict[Any, Value] = {}
        self._token: Value | None = None

    @property
    def token(self) -> Value:
        """The token that the next ordered effect takes and then replaces by its own; see `regions`."""
        if self._token is None:
            self._token = self.constant(np.zeros((), TOKEN.dtype))
        return self._token

    @token.setter
    def token(self, token: Value) -> None:
        self._token = token

    def argument(self, name: str, aval: ShapedArray) -> Value:
        """Return a further argument of the function or region, with an origin of its own."""
        self._origin_bits += 1
        return Value(name, aval, 1 << (self._origin_bits - 1))

    if TYPE_CHECKING:  # methods of one part that another part calls

        @overload
        def op(
            self, name: str, *operands: Value, out: ShapedArray, attrs: str = "", regions: Sequence[str] = ()
        ) -> Value: ...
        @overload
        def op(
            self, name: str, *operands: Value, out: Sequence[ShapedArray], attrs: str = "", regions: Sequence[str] = ()
        ) -> list[Value]: ...
        def op(self, name: str, *operands: Value, out: Any, attrs: str = "", regions: Sequence[str] = ()) -> Any: ...

        def constant(self, value: Any, dtype: Any = None) -> Value: ...

        def behind_barriers(self, vals: Sequence[Value]) -> list[Value]: ...

        def _region(
            self, arg_avals: Sequence[ShapedArray], body: Callable[..., Any], dialect: str, given: Sequence[Value] = ()
        ) -> str: ...
