"""`Call`: an application of a primitive to operands and parameters."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from corejax.extend import (
    ClosedJaxpr,
    Example,
    Primitive,
    ShapedArray,
    batch_jaxpr,
    jvp_jaxpr,
    jvp_rules,
    stage_closed,
    vmap_rules,
)
from corejax.extend.transforms import why_not_differentiable
from corejax_testing.arrays import Array, is_inexact, on_host, replaced, show
from corejax_testing.operands import admits, drawn, prepared
from corejax_testing.outcomes import NotApplicable

_WIDE = {"f": np.dtype(np.float64), "c": np.dtype(np.complex128)}


@dataclass(frozen=True)
class Call:
    """One application of a primitive.

    Attributes:
        primitive: the primitive.
        values: the operands, NumPy arrays.
        params: the static parameters.
        example: the author's example that the application was made from.
        others: all of the author's examples; `siblings` takes other numbers from them.
    """

    primitive: Primitive
    values: tuple[Array, ...]
    params: dict[str, Any]
    example: Example = field(repr=False)
    others: tuple[Example, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, primitive: Primitive, example: Example, rng: np.random.Generator) -> Call:
        """Return an application to operands drawn for an example.

        Raises:
            NotApplicable: no operands satisfy the example.
        """
        try:
            values = drawn(example, rng)
        except Exception as error:  # the check `examples` reports invalid examples
            raise NotApplicable(f"{type(error).__name__}: {error}") from error
        return cls(primitive, values, dict(example.params), example)

    @property
    def avals(self) -> tuple[ShapedArray, ...]:
        """The types of the operands."""
        return tuple(ShapedArray(x.shape, x.dtype) for x in self.values)

    @property
    def avals_out(self) -> tuple[ShapedArray, ...]:
        """The types of the results that abstract eval returns."""
        return self.types(self.avals)

    def types(self, avals: tuple[ShapedArray, ...]) -> tuple[ShapedArray, ...]:
        """Return the types of the results for operands of the given types."""
        if self.example.within is None:
            return self.primitive.abstract(avals, self.params)
        return tuple(stage_closed(self._apply, avals).out_avals)

    @property
    def inexact(self) -> tuple[int, ...]:
        """The positions of the operands that have derivatives: inexact, and not declared nondifferentiable."""
        return tuple(
            i
            for i, x in enumerate(self.values)
            if is_inexact(x.dtype) and why_not_differentiable(self.primitive, i) is None
        )

    @property
    def moves(self) -> list[bool]:
        """The flags of the operands that have derivatives."""
        return [i in self.inexact for i in range(len(self.values))]

    @property
    def size(self) -> int:
        """The number of elements of all operands."""
        return sum(x.size for x in self.values)

    def __call__(self, *values: Any) -> list[Any]:
        """Return the results for other operands of the same types, as a list.

        Raises:
            NotApplicable: the example excludes these operands.
        """
        if not admits(self.example, values):
            raise NotApplicable("the example excludes the operands that the check needs")
        return self._apply(*values)

    def _apply(self, *values: Any) -> list[Any]:
        within = self.example.within
        applied = self._bind if within is None else within(self._bind)
        return list(applied(*values))

    def _bind(self, *values: Any) -> list[Any]:
        out = self.primitive.bind(*values, **self.params)
        return list(out) if self.primitive.multiple_results else [out]

    def require_alone(self) -> None:
        """Require an application by itself, for checks that call rules directly.

        Raises:
            NotApplicable: the example applies the primitive inside another function (`within`).
        """
        if self.example.within is not None:
            raise NotApplicable("its example applies it inside another function (`within`)")

    def closed(self) -> ClosedJaxpr:
        """Return the program that consists of this application."""
        return stage_closed(self.__call__, self.avals)

    def transforms(self) -> dict[str, Callable[[ClosedJaxpr], ClosedJaxpr]]:
        """Return the transformations of its program by its jvp and vmap rules, by kind of rule, if it has them."""
        found: dict[str, Callable[[ClosedJaxpr], ClosedJaxpr]] = {}
        moves = self.moves
        if any(moves) and jvp_rules.find(self.primitive) is not None:
            found["jvp"] = lambda program: jvp_jaxpr(program, moves)[0]
        if self.values and vmap_rules.find(self.primitive) is not None:
            found["vmap"] = lambda program: batch_jaxpr(program, 3, [0] * len(self.values))[0]
        return found

    def choices_of_unknown(self, most: int = 5) -> Iterator[list[bool]]:
        """Yield flags of unknown operands: every choice among the first `most` operands, with the others known."""
        count = len(self.values)
        for mask in itertools.product((False, True), repeat=min(count, most)):
            yield [*mask, *[False] * (count - len(mask))]

    def leaves_out(self, name: str) -> bool:
        """Return whether the example skips a check, or declares that it fails by design."""
        return name in self.example.skip or name in self.example.fails

    def at(self, values: Sequence[Any]) -> Call:
        """Return the same application to other operands."""
        return replace(self, values=tuple(on_host(x) for x in values))

    def again(self, rng: np.random.Generator, kept: Collection[int] = ()) -> Call:
        """Return the application to newly drawn operands that satisfy the example.

        Operands that the author gave as numbers stay, or are taken from another example. Operands at the positions
        `kept` stay. If no operands are found, the application itself is returned.
        """
        known = [self, *(() if kept else self.siblings())]
        start = known[int(rng.integers(len(known)))] if len(known) > 1 else self
        shaped = replace(self.example, operands=tuple(
            ShapedArray(x.shape, x.dtype) if isinstance(given, ShapedArray) else x
            for x, given in zip(start.values, self.example.operands, strict=True)
        ))  # fmt: skip
        try:
            return self.at(drawn(shaped, rng, {i: self.values[i] for i in kept}))
        except Exception:  # no other operands fit those that are kept
            return self

    def near(self, values: Sequence[Any]) -> Call | None:
        """Return the application to other operands after `prepare`, or None if the example excludes them."""
        try:
            call = self.at(prepared(self.example, [np.asarray(x) for x in values]))
        except Exception:  # the author's `prepare` need not accept them
            return None
        return call if admits(self.example, call.values) else None

    def siblings(self) -> Iterator[Call]:
        """Yield the application with the given numbers of other examples of the same types and parameters."""
        fixed = [i for i, x in enumerate(self.example.operands) if not isinstance(x, ShapedArray)]
        for other in self.others if fixed else ():
            if other is self.example or len(other.operands) != len(self.values):
                continue
            given = {i: np.asarray(other.operands[i]) for i in fixed if not isinstance(other.operands[i], ShapedArray)}
            same_types = all(
                (x.shape, x.dtype) == (tuple(y.shape), np.dtype(y.dtype))
                for x, y in zip(self.values, other.operands, strict=True)
            )
            if same_types and len(given) == len(fixed) and str(other.params) == str(self.example.params):
                yield self.at([given.get(i, x) for i, x in enumerate(self.values)])

    def widened(self) -> Call:
        """Return the application in float64 and complex128, or itself if the primitive refuses these dtypes."""
        call = self.at([x.astype(_WIDE["c" if x.dtype.kind == "c" else "f"]) if is_inexact(x.dtype) else x
                        for x in self.values])  # fmt: skip
        return call if accepts(call) else self

    def moving(self) -> tuple[Callable[..., list[Any]], list[Array], list[int]]:
        """Return the application as a function from its differentiable operands to its inexact results.

        Returns:
            The function, those operands, and the positions of the results.

        Raises:
            NotApplicable: there are no such operands or results.
        """
        outs = [i for i, a in enumerate(self.avals_out) if is_inexact(a.dtype)]
        reasons = [why_not_differentiable(self.primitive, i) for i in range(len(self.values))]
        if not self.inexact and any(reasons):
            raise NotApplicable(f"declared nondifferentiable: {next(filter(None, reasons))}")
        if not self.inexact or not outs:
            raise NotApplicable("no operand or no result is a floating-point number")

        def fun(*moving: Any) -> list[Any]:
            results = self(*replaced(self.values, self.inexact, moving))
            return [results[i] for i in outs]

        return fun, [self.values[i] for i in self.inexact], outs

    @property
    def fixed(self) -> list[int]:
        """The positions of the operands that nests keep constant: nondifferentiable ones, if others are not."""
        found = [i for i, x in enumerate(self.values) if is_inexact(x.dtype) and not self.moves[i]]
        return found if self.inexact else []

    def varying(self) -> tuple[Callable[..., list[Any]], list[Array]]:
        """Return the application as a function of the operands that nests vary, and these operands."""
        fixed = self.fixed
        if not fixed:
            return self, list(self.values)

        def fun(*varying: Any) -> list[Any]:
            rest = iter(varying)
            return self(*(x if i in fixed else next(rest) for i, x in enumerate(self.values)))

        return fun, [x for i, x in enumerate(self.values) if i not in fixed]

    def __str__(self) -> str:
        params = "".join(f"\n    {name} = {value!r}" for name, value in self.params.items())
        operands = "".join(f"\n    operand {i}: {show(x)}" for i, x in enumerate(self.values))
        return f"{self.primitive.name}{params}{operands}"


def accepts(call: Call) -> bool:
    """Return whether the example admits the operands and abstract eval accepts them (no TypeError or ValueError)."""
    if not admits(call.example, call.values):
        return False
    try:
        call.avals_out  # noqa: B018
    except (TypeError, ValueError):
        return False
    return True


def runs(call: Call) -> bool:
    """Return whether impl accepts the operands, that is raises no ValueError, IndexError or ArithmeticError.

    A TypeError about a result of the wrong type is no refusal and passes through.
    """
    try:
        host(call(*call.values))
    except (ValueError, IndexError, ArithmeticError):
        return False
    return True


def host(values: Sequence[Any]) -> list[Array]:
    """Convert results to NumPy arrays."""
    return [on_host(x) for x in values]
