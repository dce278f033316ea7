"""`Case`: a program with operands, its results, and bounds of their rounding errors.

Eager and compiled programs round differently, and a comparison or a floor may turn a rounding error into a jump. So all
comparisons use bounds: the program runs again with every result of every equation, also in nested programs, multiplied
by one plus a few random units of its last place (Parker, "Monte Carlo arithmetic", 1997). The runs come in antithetic
pairs, so that a threshold is crossed in both directions. Results that change get a tolerance of that size; integers and
booleans that change are not compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from corejax.extend import (
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    Primitive,
    ShapedArray,
    Var,
    abstract_eval_rules,
    impl_rules,
    memoised,
    primitives,
)
from corejax.extend.programs import Literal, eval_jaxpr, subjaxprs
from corejax.extend.transforms import why_not_differentiable
from corejax_testing.arrays import Array, epsilon, has_tangents, is_inexact, tolerance, wide
from corejax_testing.calls import host
from corejax_testing.operands import are_meant, constraints
from corejax_testing.outcomes import NotApplicable

# The programs of COMBINES are part of one operation, from which XLA makes no callbacks, so they get no noise.
COMBINES = frozenset({"reduce", "reduce_window", "select_and_scatter", "scatter_apply"})
# Primitives that compile their program. Evaluation by impl rules alone inlines the program.
CALLS = frozenset({"xla_call"})
# How primitives round. Those that move numbers are exact. Those that choose between numbers are exact too, but the
# choice may depend on the last place of each operand. Those that compute round their results. Other primitives may do
# all three.
MOVES = frozenset((
    "broadcast_in_dim", "complex", "concatenate", "conj", "copy", "dynamic_slice", "dynamic_update_slice", "gather",
    "imag", "iota", "neg", "pad", "real", "reshape", "rev", "scatter", "select_n", "slice", "split", "squeeze",
    "stack", "stop_gradient", "tile", "transpose", "unstack",
))  # fmt: skip
CHOOSES = frozenset((
    "abs", "approx_top_k", "argmax", "argmin", "ceil", "clamp", "cummax", "cummin", "eq", "floor", "ge", "gt",
    "is_finite", "le", "lt", "max", "min", "ne", "reduce_max", "reduce_min", "reduce_window_max", "reduce_window_min",
    "round", "scatter-max", "scatter-min", "select_and_gather_add", "sign", "sort", "top_k",
))  # fmt: skip
COMPUTES = frozenset((
    "acos", "acosh", "add", "add_any", "asin", "asinh", "atan", "atanh", "cos", "cosh", "cumsum", "cumprod", "div",
    "dot_general", "erf", "exp", "expm1", "integer_pow", "log", "log1p", "logistic", "mul", "pow", "reduce_prod",
    "reduce_sum", "rsqrt", "sin", "sinh", "sqrt", "sub", "tan", "tanh",
))  # fmt: skip
PAIRS = 3  # the number of antithetic pairs of runs


class _Noise:
    """The state of the noise during a run: the position in the table of random numbers, and the sign."""

    table = np.random.default_rng(0).choice([-1.0, 1.0], 1 << 16) * np.random.default_rng(1).uniform(0.5, 1.0, 1 << 16)
    place = 0
    sign = 1.0

    @classmethod
    def of(cls, x: Array) -> Array:
        """Return x with a relative error of up to the noise's amplitude for its dtype."""
        size = cls.sign * _AMPLITUDE.get(x.dtype.name, 4.0) * epsilon(x.dtype)
        if cls.place + x.size > cls.table.size:
            cls.place = 0
        factor = np.resize(cls.table[cls.place : cls.place + x.size], x.shape)
        cls.place += x.size
        return np.asarray(wide(x) * (1 + size * factor)).astype(x.dtype)


# The noise in units of the last place: more than libraries of elementary functions differ, but still negligible.
_AMPLITUDE = {"float64": 64.0, "complex128": 64.0, "float32": 16.0, "complex64": 16.0}

noise_p = Primitive("corejax_testing.noise", doc="Its operand, with a rounding error.")
impl_rules.register(noise_p, _Noise.of)
abstract_eval_rules.register(noise_p, lambda x: x)
primitives.pop(noise_p.name)  # an internal tool, which must not be listed, checked or parsed


def _require_meant(*values: Array, application: _Application) -> list[Array]:
    if not are_meant(application.primitive, values, application.params):
        raise NotApplicable(f"no example admits such operands of {application.primitive.name}")
    return []


@dataclass(frozen=True, eq=False)
class _Application:
    primitive: Primitive
    params: dict[str, Any]


guard_p = Primitive("corejax_testing.guard", multiple_results=True, doc="Refuses operands that no example admits.")
impl_rules.register(guard_p, _require_meant)
abstract_eval_rules.register(guard_p, lambda *avals, application: [])
primitives.pop(guard_p.name)


# -- programs ----------------------------------------------------------------------------------------------------


def map_programs(params: dict[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """Return parameters with their programs replaced."""

    def one(value: Any) -> Any:
        if isinstance(value, tuple | list):
            return type(value)(one(item) for item in value) if not hasattr(value, "_fields") else value
        return change(value) if isinstance(value, ClosedJaxpr | Jaxpr) else value

    return {name: one(value) for name, value in params.items()}


def _refused(program: ClosedJaxpr | Jaxpr) -> frozenset[int]:
    """Return the positions of operands that reach a nondifferentiable operand or a dtype without tangents."""
    jaxpr = program.jaxpr if isinstance(program, ClosedJaxpr) else program
    refused: set[Var] = set()
    for eqn in reversed(jaxpr.eqns):
        scales = any(is_inexact(v.aval.dtype) and not has_tangents(v.aval.dtype) for v in eqn.outvars)
        every = scales or not refused.isdisjoint(eqn.outvars) or any(_refused(sub) for sub in subjaxprs(eqn.params))
        for i, v in enumerate(eqn.invars):
            if isinstance(v, Var) and (every or why_not_differentiable(eqn.primitive, i) is not None):
                refused.add(v)
    return frozenset(i for i, v in enumerate(jaxpr.invars) if v in refused)


def rewritten(program: Any, noisy: bool) -> Any:
    """Return the program with calls inlined, and optionally with noise around every equation that rounds or chooses.

    Primitives with constrained examples are guarded: operands that no example admits raise `NotApplicable`.
    """
    closed = isinstance(program, ClosedJaxpr)
    jaxpr = program.jaxpr if closed else program
    eqns: list[JaxprEqn] = []
    env: dict[Var, Any] = {}
    _rewrite(jaxpr.eqns, env, eqns, noisy)
    outs = [_read(env, v) for v in jaxpr.outvars]
    new = Jaxpr(jaxpr.constvars, jaxpr.invars, eqns, outs)
    return ClosedJaxpr(new, program.consts) if closed else new


def _read(env: dict[Var, Any], atom: Any) -> Any:
    return env.get(atom, atom) if isinstance(atom, Var) else atom


def _rewrite(eqns: Sequence[JaxprEqn], env: dict[Var, Any], out: list[JaxprEqn], noisy: bool) -> None:
    for eqn in eqns:
        operands = [_read(env, v) for v in eqn.invars]
        body = _called(eqn)
        if body is not None:
            inner: dict[Var, Any] = dict(zip(body.jaxpr.invars, operands, strict=True))
            _rewrite(body.eqns, inner, out, noisy)
            env.update(zip(eqn.outvars, (_read(inner, v) for v in body.jaxpr.outvars), strict=True))
            continue
        fresh = [Var(v.aval) for v in eqn.outvars]
        subs = list(subjaxprs(eqn.params)) if eqn.primitive.name not in COMBINES else []
        name = eqn.primitive.name
        if constraints(eqn.primitive):
            out.append(JaxprEqn(guard_p, operands, [], {"application": _Application(eqn.primitive, eqn.params)}))
        if noisy and not subs and name not in MOVES and name not in COMPUTES:
            operands = [_with_noise(v, out) for v in operands]
        params = map_programs(eqn.params, lambda p: rewritten(p, noisy)) if subs else eqn.params
        out.append(JaxprEqn(eqn.primitive, operands, fresh, params, eqn.source_info))
        rounds = noisy and not subs and name not in MOVES and name not in CHOOSES
        env.update((v, _with_noise(new, out) if rounds else new) for v, new in zip(eqn.outvars, fresh, strict=True))


def _with_noise(atom: Any, out: list[JaxprEqn]) -> Any:
    """Append an equation that adds noise to an atom, and return the new variable."""
    if not isinstance(atom, Var) or not is_inexact(atom.aval.dtype):
        return atom
    moved = Var(atom.aval)
    out.append(JaxprEqn(noise_p, [atom], [moved], {}))
    return moved


def _called(eqn: JaxprEqn) -> ClosedJaxpr | None:
    """Return the program that an equation calls if the equation is a plain call, else None."""
    if eqn.primitive.name not in CALLS:
        return None
    subs = list(subjaxprs(eqn.params))
    if len(subs) != 1 or not isinstance(subs[0], ClosedJaxpr) or subs[0].consts:
        return None
    fits = len(subs[0].jaxpr.invars) == len(eqn.invars) and len(subs[0].jaxpr.outvars) == len(eqn.outvars)
    return subs[0] if fits else None


# -- cases -------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Case:
    """A program and operands.

    Attributes:
        program: a closed program without constants.
        values: the operands, NumPy arrays.
        salt: the seed for a relation's tangents and batches.
        derived: a cache of the cases that nests made from this one.
    """

    program: ClosedJaxpr
    values: tuple[Array, ...]
    salt: int = 0
    derived: dict[str, Case] = field(default_factory=dict, repr=False)
    _outs: list[Array] | None = field(default=None, repr=False)
    _bounds: list[Array] | None = field(default=None, repr=False)

    def __call__(self, *args: Any) -> list[Any]:
        """Evaluate the program."""
        return eval_jaxpr(self.program.jaxpr, self.program.consts, args)

    def at(self, values: Sequence[Any]) -> Case:
        """Return the same program with other operands."""
        return Case(self.program, tuple(np.asarray(x) for x in values), self.salt)

    @property
    def smooth(self) -> list[int]:
        """The positions of the operands to differentiate by: all with derivatives, or some of them if salt is odd."""
        refused = memoised(self.program, ("fuzz refused",), lambda: _refused(self.program))
        every = [i for i, a in enumerate(self.program.in_avals) if has_tangents(a.dtype) and i not in refused]
        some = [i for i in every if self.rng(4, i).random() < 0.7] if self.salt % 2 else every
        return some or every

    @property
    def smooth_outs(self) -> list[int]:
        """The positions of the results that have derivatives."""
        return [i for i, a in enumerate(self.program.out_avals) if has_tangents(a.dtype)]

    def rng(self, *key: int) -> np.random.Generator:
        """Return a generator for a purpose, which is the same each time."""
        return np.random.default_rng([self.salt, *key])

    def outs(self) -> list[Array]:
        """Return the results by impl rules alone, on NumPy arrays from end to end; they are cached."""
        if self._outs is None:
            self._outs = evaluate(self.program, self.values)
        return self._outs

    def bounds(self) -> list[Array]:
        """Return the allowed error of each result, elementwise; inf for elements that are not compared."""
        if self._bounds is None:
            self._bounds = _bounds(self.program, self.values, self.outs())
        return self._bounds


def evaluate(program: ClosedJaxpr, values: Sequence[Any]) -> list[Array]:
    """Return the results by impl rules, with calls inlined."""
    plain = memoised(program, ("fuzz plain",), lambda: rewritten(program, False))
    return host(eval_jaxpr(plain.jaxpr, plain.consts, values))


def noisy_runs(program: ClosedJaxpr, values: Sequence[Any]) -> list[list[Array]]:
    """Return the results of runs with random rounding errors, in antithetic pairs."""
    noisy = memoised(program, ("fuzz noisy",), lambda: rewritten(program, True))
    runs = []
    for pair in range(PAIRS):
        for sign in (1.0, -1.0):
            _Noise.place, _Noise.sign = 7919 * pair, sign
            runs.append(host(eval_jaxpr(noisy.jaxpr, noisy.consts, values)))
    return runs


def _bounds(program: ClosedJaxpr, values: Sequence[Any], outs: Sequence[Array]) -> list[Array]:
    runs = noisy_runs(program, values)
    return [_bound(x, [run[k] for run in runs]) for k, x in enumerate(outs)]


def _bound(x: Array, moved: Sequence[Array]) -> Array:
    if not is_inexact(x.dtype):
        same = np.ones(x.shape, bool)
        for other in moved:
            same &= np.asarray(other == x)
        return np.where(same, 0.0, np.inf)
    with np.errstate(all="ignore"):
        a = wide(x)
        spread = np.zeros(x.shape)
        for other in moved:
            spread = np.maximum(spread, np.abs(wide(other) - a))
        size = np.abs(a)[np.isfinite(a)].max(initial=1.0)
        bound = 10 * spread + tolerance(x.dtype) * size
        return np.where(np.isfinite(a) & np.isfinite(bound), bound, np.inf)


def values_of(case: Case) -> dict[Var, Array]:
    """Return the value of every variable of the outermost program."""
    env: dict[Any, Array] = dict(zip(case.program.jaxpr.invars, case.values, strict=True))
    for eqn in case.program.eqns:
        read = list(dict.fromkeys(v for v in eqn.invars if isinstance(v, Var)))
        alone = ClosedJaxpr(Jaxpr((), read, [eqn], eqn.outvars), ())
        env.update(zip(eqn.outvars, evaluate(alone, [env[v] for v in read]), strict=True))
    return env


def scalar_literal(value: Any, aval: ShapedArray) -> Literal:
    """Return a literal of a scalar."""
    return Literal(np.asarray(value, aval.dtype)[()], aval)
