"""What a translation context knows of what values are computed from: for writes in place."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from corejax.extend import ShapedArray
from corejax_xla_backend._lowering.module import ModuleBuilder
from corejax_xla_backend._lowering.regions import Region
from corejax_xla_backend._lowering.types import KNOWN_NAN, OWN, Value

_KEPT = ' {mhlo.frontend_attributes = {inlineable = "false"}}'


class InPlace:
    """Methods of `TranslationContext`.

    Attributes:
        module: the module under construction.
        platform: the platform that is compiled for.
    """

    __slots__ = ()

    module: ModuleBuilder
    platform: str
    call_symbol: Callable[..., list[Value]]
    _origin_bits: int

    def written(self, operand: Value, update: Value) -> Value:
        """An update, for an operation that writes it to one window of an operand.

        XLA on CPUs writes in place, in the loop that computes the update. Where the operand or the result is reshaped
        it does not see that the update is computed from the operand, too, and reads what it has just written:
        `x.at[1:].set(x[:-1])[:, None]`. Such an update is stored before. Of a single element all is read before.
        """
        shared = operand.origins & update.origins & ~KNOWN_NAN
        return self.materialized(update) if update.aval.size != 1 and shared else update

    def materialized(self, x: Value) -> Value:
        """The same value, stored before it is used: XLA does not compute it in the loop of what takes it.

        For CPUs, where barriers are gone by then. A call of a function that does nothing costs nothing.
        """
        if self.platform != "cpu":
            return x
        return self.call_symbol(self.module.identity(x.aval), [x], [x.aval], _KEPT)[0]

    def argument(self, name: str, aval: ShapedArray) -> Value:
        """One more argument of the function or region."""
        self._origin_bits += 1
        return Value(name, aval, 1 << (self._origin_bits - 1))

    def _origins(self, operands: Sequence[Value], regions: Sequence[str] = ()) -> int:
        """What results are computed from; of a region that does not tell all around it."""
        origins = 0 if operands else OWN
        for x in operands:
            origins |= x.origins
        if regions:
            around = (1 << self._origin_bits) - 1
            for region in regions:
                origins |= around & region.origins if type(region) is Region else around
        return origins
