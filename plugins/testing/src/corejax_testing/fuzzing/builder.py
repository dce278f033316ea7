"""Build a program step by step: equations, and their values for the program's operands.

An equation takes existing values as operands if they have the type and range that the example asks for. Else an
existing value is adapted (converted, reshaped, broadcast, squashed into the range), or the program gets a further
argument.

A program is reduced by building it again without some equations. Their results become arguments with the same values,
so the rest of the program does not change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import corejax
from corejax.extend import ClosedJaxpr, Example, Jaxpr, JaxprEqn, Primitive, ShapedArray, Var, get_aval, stage_closed
from corejax.extend.programs import dce
from corejax_testing.arrays import Array, draw, is_inexact, wide
from corejax_testing.calls import Call
from corejax_testing.fuzzing.case import Case, evaluate, scalar_literal
from corejax_testing.fuzzing.nests import lax_name, undefined_is_not_applicable
from corejax_testing.fuzzing.tables import SHAPES, in_range
from corejax_testing.operands import admits
from corejax_testing.outcomes import NotApplicable

LARGEST = 1e3  # the largest number in values: programs that blow up show nothing
MOST = 400  # the maximal number of elements of a value


class Unfit(Exception):
    """An equation cannot be added; the generator tries another one."""


class Raised(Exception):
    """A rule or transformation raised an error while a program was built, which is a failure to report.

    Attributes:
        case: the program that raises the error.
        relation: the relation that reproduces it.
    """

    def __init__(self, case: Case, relation: str, error: Exception) -> None:
        super().__init__(f"{type(error).__name__}: {error}")
        self.case, self.relation = case, relation


Choose = Callable[[], int]
DIGITS = 3


def whole() -> int:
    """Keep every part of a program."""
    return DIGITS


class Builder:
    """A scope of a program: arguments with values, equations, and all values computed so far.

    Args:
        rng: the source of all random choices.
        salt: the salt of the case.
        choose: called for each part that a smaller program may omit; 0 omits the part.
        digits: decimals to which floating-point operands are rounded; `DIGITS` or more do not round.
    """

    def __init__(self, rng: np.random.Generator, salt: int, choose: Choose = whole, digits: int = DIGITS) -> None:
        self.rng = rng
        self.salt = salt
        self.choose = choose
        self.digits = digits
        self.invars: list[Var] = []
        self.values: list[Array] = []
        self.eqns: list[JaxprEqn] = []
        self.pool: list[tuple[Var, Array]] = []

    def argument(self, value: Array) -> Var:
        """Add an argument with a value."""
        var = Var(get_aval(value))
        self.invars.append(var)
        self.values.append(value)
        self.pool.append((var, value))
        return var

    # -- operands ------------------------------------------------------------------------------------------------

    def operand(self, aval: ShapedArray, low: float, high: float) -> Var:
        """Return a variable of a type with numbers in a range: an existing one, an adapted one, or a new argument."""
        dice = self.rng.random()
        fitting = [v for v, x in self.pool if v.aval is aval and in_range(x, low, high)]
        if fitting and dice < 0.8:
            recent = fitting[-4:] if self.rng.random() < 0.7 else fitting
            return recent[int(self.rng.integers(len(recent)))]
        if self.pool and dice < 0.9:
            for _ in range(2):
                made = self._made_to_fit(aval, low, high)
                if made is not None:
                    return made
        value = draw(self.rng, aval, low, high)
        if self.digits < DIGITS and is_inexact(aval.dtype):
            rounded = np.round(wide(value), self.digits).astype(value.dtype)
            value = rounded if in_range(rounded, low, high) else value
        return self.argument(value)

    def _made_to_fit(self, aval: ShapedArray, low: float, high: float) -> Var | None:
        recent = self.pool[-6:]
        var, x = recent[int(self.rng.integers(len(recent)))]
        fun = glue(x, aval, low, high)
        if fun is None:
            return None
        try:
            program = stage_closed(lambda y: [fun(y)], [var.aval])
            made = self.inline(program, [var])[0]
        except Unfit:
            return None
        return made if made.aval is aval and in_range(self.pool[-1][1], low, high) else None

    # -- equations -----------------------------------------------------------------------------------------------

    def apply(self, primitive: Primitive, example: Example) -> None:
        """Add an equation that applies a primitive as an example does.

        Raises:
            Unfit: the results are not finite, or too large, or the primitive refuses the operands.
            Raised: the impl rule raises an error.
        """
        atoms = self._operands(primitive, example)
        params = dict(example.params)
        try:
            avals = primitive.abstract(tuple(a.aval for a in atoms), params)
        except (TypeError, ValueError) as error:
            raise Unfit(str(error)) from error
        eqn = JaxprEqn(primitive, atoms, [Var(a) for a in avals], params)
        read = list(dict.fromkeys(a for a in atoms if isinstance(a, Var)))
        alone = ClosedJaxpr(Jaxpr((), read, [eqn], eqn.outvars), ())
        self._compute(alone, read, [eqn], eqn.outvars)

    def _operands(self, primitive: Primitive, example: Example) -> list[Any]:
        """Return existing or adapted operands, or new arguments if the example excludes those."""
        shapes = self._shapes(primitive, example)
        mark = len(self.invars), len(self.values), len(self.eqns), len(self.pool)
        atoms: list[Any] = []
        for i, (given, shape) in enumerate(zip(example.operands, shapes, strict=True)):
            if isinstance(given, ShapedArray):
                atoms.append(self.operand(given.update(shape=shape), *example.range_of(i)))
            elif np.ndim(given) == 0 and np.asarray(given).dtype.names is None and self.rng.random() < 0.7:
                atoms.append(scalar_literal(given, get_aval(np.asarray(given))))
            else:
                atoms.append(self.argument(np.asarray(given)))
        there = dict(self.pool)
        if admits(example, [there[a] if isinstance(a, Var) else a.val for a in atoms]):
            return atoms
        lists: tuple[list[Any], ...] = (self.invars, self.values, self.eqns, self.pool)
        for made, length in zip(lists, mark, strict=True):
            del made[length:]
        return [self.argument(x) for x in Call.of(primitive, example, self.rng).values]

    def _shapes(self, primitive: Primitive, example: Example) -> list[tuple[int, ...]]:
        given = [tuple(x.shape) for x in example.operands]
        free = all(isinstance(x, ShapedArray) for x in example.operands) and "elementwise" in primitive.tags
        if not free or not given or self.rng.random() < 0.3:
            return given
        near = [x.shape for _, x in self.pool if 0 < x.size <= MOST] if self.rng.random() < 0.8 else []
        shapes = near or SHAPES
        shape = shapes[int(self.rng.integers(len(shapes)))]
        scalar = [len(given) > 1 and self.rng.random() < 0.15 for _ in given]
        return [() if one else shape for one in scalar]

    def inline(self, program: ClosedJaxpr, operands: Sequence[Var]) -> list[Var]:
        """Add the equations of a program and return its results.

        Raises:
            Unfit: the results are not finite, or too large.
            Raised: an impl rule raises an error.
        """
        env: dict[Any, Any] = dict(zip(program.jaxpr.invars, operands, strict=True))
        eqns = []
        for eqn in program.eqns:
            fresh = [Var(v.aval) for v in eqn.outvars]
            read = [env.get(a, a) if isinstance(a, Var) else a for a in eqn.invars]
            eqns.append(JaxprEqn(eqn.primitive, read, fresh, eqn.params))
            env.update(zip(eqn.outvars, fresh, strict=True))
        outs = [env.get(a) if isinstance(a, Var) else None for a in program.jaxpr.outvars]
        known = [o for o in outs if o is not None]
        if not known:
            raise Unfit("no results")
        kept = ClosedJaxpr(
            Jaxpr((), program.jaxpr.invars, program.eqns, [a for a in program.jaxpr.outvars if isinstance(a, Var)]), ()
        )
        self._compute(kept, operands, eqns, known)
        return known

    def _compute(
        self, program: ClosedJaxpr, operands: Sequence[Var], eqns: list[JaxprEqn], results: Sequence[Var]
    ) -> None:
        there = dict(self.pool)
        values = [there[v] for v in operands]
        try:
            with undefined_is_not_applicable():
                outs = evaluate(program, values)
        except NotApplicable:
            raise
        except Exception as error:
            raise Raised(Case(program, tuple(values), 0), "eager", error) from error
        for x in outs:
            if x.size > MOST:
                raise Unfit("large")
            if is_inexact(x.dtype) and not np.all(np.abs(x.astype(complex)) <= LARGEST):
                raise Unfit("not finite, or large")
        new = {v: x for v, x in zip(results, outs, strict=True) if v not in there}
        if self.choose():
            self.eqns += eqns
        else:
            self.invars += new
            self.values += new.values()
        self.pool += new.items()

    # -- the end -------------------------------------------------------------------------------------------------

    def finish(self, count: int) -> Case:
        """Return the program that computes the last `count` unused values, after dead-code elimination.

        Raises:
            Unfit: there is no equation.
        """
        if not self.eqns:
            raise Unfit("no equations")
        read = {v for eqn in self.eqns for v in eqn.invars if isinstance(v, Var)}
        bound = [v for eqn in self.eqns for v in eqn.outvars]
        sinks = [v for v in bound if v not in read] or bound[-1:]
        jaxpr = dce(Jaxpr((), self.invars, self.eqns, sinks[-count:]))
        return without_unused(Case(ClosedJaxpr(jaxpr, ()), tuple(self.values), self.salt))


def without_unused(case: Case) -> Case:
    """Return the case without unused arguments."""
    jaxpr = case.program.jaxpr
    read = {v for eqn in jaxpr.eqns for v in eqn.invars if isinstance(v, Var)} | {
        v for v in jaxpr.outvars if isinstance(v, Var)
    }
    kept = [i for i, v in enumerate(jaxpr.invars) if v in read]
    if len(kept) == len(jaxpr.invars):
        return case
    trimmed = Jaxpr((), [jaxpr.invars[i] for i in kept], jaxpr.eqns, jaxpr.outvars)
    return Case(ClosedJaxpr(trimmed, ()), tuple(case.values[i] for i in kept), case.salt)


def glue(x: Array, aval: ShapedArray, low: float, high: float) -> Any:
    """Return a function that adapts a value to a type and range, or None if there is no way."""
    if lax_name("convert_element_type") is None or not x.size or not aval.size:
        return None
    steps = [_to_dtype(x.dtype, aval.dtype), _to_shape(x.shape, aval.shape)]
    if any(step is None for step in steps):
        return None
    if is_inexact(aval.dtype) and aval.dtype.kind != "c" and (low, high) != (-2.0, 2.0):
        steps.append(lambda y: _squash(y, aval.dtype, low, high))

    def fun(y: Any) -> Any:
        for step in steps:
            y = step(y)
        return y

    return fun


def _to_dtype(source: np.dtype[Any], target: np.dtype[Any]) -> Any:
    lax = corejax.lax
    if source == target:
        return lambda y: y
    if source.names is not None or target.names is not None:
        return None  # extended dtypes do not convert
    if target == np.bool_:
        return (lambda y: lax.gt(y, source.type(0))) if source.kind != "c" else None
    if source.kind == "c" and target.kind != "c":
        return (lambda y: lax.convert_element_type(lax.real(y), target)) if is_inexact(target) else None
    if is_inexact(source) and not is_inexact(target):
        return None  # platforms disagree on numbers beyond the integer's range
    return lambda y: lax.convert_element_type(y, target)


def _to_shape(source: tuple[int, ...], target: tuple[int, ...]) -> Any:
    lax = corejax.lax
    if source == target:
        return lambda y: y
    if np.prod(source) == np.prod(target):
        return lambda y: lax.reshape(y, target)
    tail = len(target) - len(source)
    if tail >= 0 and target[tail:] == source:
        return lambda y: lax.broadcast_in_dim(y, target, tuple(range(tail, len(target))))
    if len(source) == len(target) and all(a >= b for a, b in zip(source, target, strict=True)):
        return lambda y: lax.slice(y, (0,) * len(target), target)
    if len(source) > len(target) and source[len(source) - len(target) :] == target:
        start = (0,) * len(source)
        first = (1,) * (len(source) - len(target)) + target
        return lambda y: lax.reshape(lax.slice(y, start, first), target)
    return None


def _squash(y: Any, dtype: np.dtype[Any], low: float, high: float) -> Any:
    lax = corejax.lax
    scale, shift = dtype.type(0.98 * (high - low)), dtype.type(low + 0.01 * (high - low))
    return lax.logistic(y) * scale + shift
