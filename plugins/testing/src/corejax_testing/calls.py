"""`Call`: a primitive with operands and parameters, ready to be applied."""

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
    """One application.

    Attributes:
        primitive: what is applied.
        values: the operands, NumPy arrays.
        params: the static parameters.
        example: where it comes from.
        others: the author's examples, among which are those with other numbers where this one has numbers.
    """

    primitive: Primitive
    values: tuple[Array, ...]
    params: dict[str, Any]
    example: Example = field(repr=False)
    others: tuple[Example, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, primitive: Primitive, example: Example, rng: np.random.Generator) -> Call:
        """An application to operands as the example's author means them.

        Raises:
            NotApplicable: none are found.
        """
        try:
            values = drawn(example, rng)
        except Exception as error:  # the check `examples` says so of an example as it is given
            raise NotApplicable(f"{type(error).__name__}: {error}") from error
        return cls(primitive, values, dict(example.params), example)

    @property
    def avals(self) -> tuple[ShapedArray, ...]:
        """Types of the operands."""
        return tuple(ShapedArray(x.shape, x.dtype) for x in self.values)

    @property
    def avals_out(self) -> tuple[ShapedArray, ...]:
        """Types of the results, as abstract eval says."""
        return self.types(self.avals)

    def types(self, avals: tuple[ShapedArray, ...]) -> tuple[ShapedArray, ...]:
        """Types of the results for operands of these types."""
        if self.example.within is None:
            return self.primitive.abstract(avals, self.params)
        return tuple(stage_closed(self._apply, avals).out_avals)

    @property
    def inexact(self) -> tuple[int, ...]:
        """Positions of the operands that have derivatives: numbers, and not declared nondifferentiable."""
        return tuple(
            i
            for i, x in enumerate(self.values)
            if is_inexact(x.dtype) and why_not_differentiable(self.primitive, i) is None
        )

    @property
    def moves(self) -> list[bool]:
        """Which operands have derivatives, one flag each."""
        return [i in self.inexact for i in range(len(self.values))]

    @property
    def size(self) -> int:
        """Numbers in the operands."""
        return sum(x.size for x in self.values)

    def __call__(self, *values: Any) -> list[Any]:
        """The results for operands of these types, as a list.

        Raises:
            NotApplicable: the example's author excludes these operands.
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
        """For checks that call rules themselves.

        Raises:
            NotApplicable: the primitive is applied inside of something, as the example says.
        """
        if self.example.within is not None:
            raise NotApplicable("it is applied inside of something else")

    def closed(self) -> ClosedJaxpr:
        """The program that consists of this application."""
        return stage_closed(self.__call__, self.avals)

    def transforms(self) -> dict[str, Callable[[ClosedJaxpr], ClosedJaxpr]]:
        """By kind of rule, how its jvp and vmap rules make another program of its program, where it has them."""
        found: dict[str, Callable[[ClosedJaxpr], ClosedJaxpr]] = {}
        moves = self.moves
        if any(moves) and jvp_rules.find(self.primitive) is not None:
            found["jvp"] = lambda program: jvp_jaxpr(program, moves)[0]
        if self.values and vmap_rules.find(self.primitive) is not None:
            found["vmap"] = lambda program: batch_jaxpr(program, 3, [0] * len(self.values))[0]
        return found

    def choices_of_unknown(self, most: int = 5) -> Iterator[list[bool]]:
        """Which operands are unknown: every choice among the first ones, the others known."""
        count = len(self.values)
        for mask in itertools.product((False, True), repeat=min(count, most)):
            yield [*mask, *[False] * (count - len(mask))]

    def leaves_out(self, name: str) -> bool:
        """Whether the author says that a check means nothing here, or fails by design."""
        return name in self.example.skip or name in self.example.fails

    def at(self, values: Sequence[Any]) -> Call:
        """The same application of other numbers."""
        return replace(self, values=tuple(on_host(x) for x in values))

    def again(self, rng: np.random.Generator, kept: Collection[int] = ()) -> Call:
        """Other numbers as the author means them; those given stay, or are another example's.

        Operands at the positions `kept` stay. Where no numbers are found these are the same.
        """
        known = [self, *(() if kept else self.siblings())]
        start = known[int(rng.integers(len(known)))] if len(known) > 1 else self
        shaped = replace(self.example, operands=tuple(
            ShapedArray(x.shape, x.dtype) if isinstance(given, ShapedArray) else x
            for x, given in zip(start.values, self.example.operands, strict=True)
        ))  # fmt: skip
        try:
            return self.at(drawn(shaped, rng, {i: self.values[i] for i in kept}))
        except Exception:  # what is kept fits nothing else
            return self

    def near(self, values: Sequence[Any]) -> Call | None:
        """The application of simpler numbers, made fit; None where the author excludes them."""
        try:
            call = self.at(prepared(self.example, [np.asarray(x) for x in values]))
        except Exception:  # the author's function need not know them
            return None
        return call if admits(self.example, call.values) else None

    def siblings(self) -> Iterator[Call]:
        """The application with the numbers of other examples of the same types and parameters, for those given."""
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
        """The same with float64 and complex128 in place of narrower ones, where the primitive takes these."""
        call = self.at([x.astype(_WIDE["c" if x.dtype.kind == "c" else "f"]) if is_inexact(x.dtype) else x
                        for x in self.values])  # fmt: skip
        return call if accepts(call) else self

    def moving(self) -> tuple[Callable[..., list[Any]], list[Array], list[int]]:
        """For derivatives: the function of the inexact operands to the inexact results, and those operands.

        Returns:
            The function, where it is taken, and which results it gives.

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
        """Positions of the operands that nests do not vary: nondifferentiable ones, where others are differentiated."""
        found = [i for i, x in enumerate(self.values) if is_inexact(x.dtype) and not self.moves[i]]
        return found if self.inexact else []

    def varying(self) -> tuple[Callable[..., list[Any]], list[Array]]:
        """The function of the operands that nests of transformations vary, and these; the fixed ones stay."""
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
    """Whether abstract eval takes the operands, and the author means them; a TypeError or ValueError is a refusal."""
    if not admits(call.example, call.values):
        return False
    try:
        call.avals_out  # noqa: B018
    except (TypeError, ValueError):
        return False
    return True


def runs(call: Call) -> bool:
    """Whether impl takes the operands: those that it refuses are not of its domain, whatever abstract eval says.

    A result of the wrong type is no refusal: that TypeError passes through.
    """
    try:
        host(call(*call.values))
    except (ValueError, IndexError, ArithmeticError):
        return False
    return True


def host(values: Sequence[Any]) -> list[Array]:
    """Results as NumPy arrays."""
    return [on_host(x) for x in values]
