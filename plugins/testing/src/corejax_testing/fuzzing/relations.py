"""Relations: properties that must hold for every program.

A relation has a name ("jit", "vmap", "jvp", ...) and applies to a program or to a nest of it: "jit of vjp of scan"
compiles the gradient of a loop. The innermost nest comes last.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

import corejax
from corejax.extend import Example, ShapedArray, Var, dtypes, get_aval, stage_closed
from corejax.extend.messages import DerivedRuleWarning
from corejax.extend.plugins import exported
from corejax.extend.programs import check_jaxpr, same_jaxpr
from corejax_explain.program_text import parse_jaxpr
from corejax_testing.arrays import Array, compare, epsilon, is_inexact, replaced, tolerance, wide
from corejax_testing.calls import host
from corejax_testing.contributions import examples_of
from corejax_testing.finite import inner
from corejax_testing.fuzzing import nests, splitting
from corejax_testing.fuzzing.case import Case, noisy_runs, values_of
from corejax_testing.fuzzing.tables import in_range
from corejax_testing.outcomes import CheckFailure, NotApplicable
from corejax_testing.parts import every_eqn, finished_later, in_halves, named
from corejax_testing.reference import interpreter

_SAMPLES = 8  # the number of tangents that are sampled within the step of a difference
OPAQUE = "<opaque "  # the printer's mark of a parameter that cannot be parsed

Relation = Callable[[Case], None]


def same(got: Sequence[Any], wanted: Sequence[Array], bounds: Sequence[Array], what: str) -> None:
    """Require results of the right number and types, and of values within bounds.

    Raises:
        CheckFailure: the results differ; the message names the element with the largest error.
    """
    if len(got) != len(wanted):
        raise CheckFailure(f"{what} returns {len(got)} results, but {len(wanted)} are right")
    for k, (a, b, bound) in enumerate(zip(host(got), wanted, bounds, strict=True)):
        # Replace elements within their bounds by the right values, so that `compare` reports only the others.
        if a.shape == b.shape and a.dtype == b.dtype:
            with np.errstate(all="ignore"):
                fine = np.isinf(bound) | (a == b)
                if is_inexact(a.dtype):
                    fine |= np.abs(wide(a) - wide(b)) <= bound
            a = np.where(fine, b, a)
        compare(a, b, f"result {k} {what}", None, allowed=0.0)


# -- text, types, evaluation -------------------------------------------------------------------------------------


def check_types(case: Case) -> None:
    """Check that the program is well typed, and that staging and evaluating it give results of the same types."""
    check_jaxpr(case.program)
    again = stage_closed(lambda *xs: case(*xs), case.program.in_avals)
    check_jaxpr(again)
    _require_types(case, again.out_avals, ", staged again,")
    _require_types(case, map(get_aval, case(*case.values)), "")


def _require_types(case: Case, avals: Iterable[ShapedArray], how: str) -> None:
    for k, (got, aval) in enumerate(zip(avals, case.program.out_avals, strict=True)):
        if got is not aval:
            raise CheckFailure(f"result {k}{how} is of type {got.str_short()}, but {aval.str_short()} is right")


def check_text(case: Case) -> None:
    """Check that the program's text parses to the same program, which prints to the same text."""
    text = str(case.program)
    if OPAQUE in text:
        raise NotApplicable("it has parameters without text: functions, for example")
    parsed = parse_jaxpr(text)
    if not same_jaxpr(parsed, case.program):
        raise CheckFailure(f"its text parses to another program:\n{parsed}")
    if str(parsed) != text:
        raise CheckFailure(f"the parsed program prints differently, as\n{parsed}")


def check_eager(case: Case) -> None:
    """Check that primitives applied one by one give the program's results."""
    env: dict[Any, Any] = dict(zip(case.program.jaxpr.invars, case.values, strict=True))
    for eqn in case.program.eqns:
        out = eqn.primitive.bind(*(env.get(v, getattr(v, "val", None)) for v in eqn.invars), **eqn.params)
        env.update(zip(eqn.outvars, out if eqn.primitive.multiple_results else [out], strict=True))
    outs = [env.get(v, getattr(v, "val", None)) for v in case.program.jaxpr.outvars]
    same(outs, case.outs(), case.bounds(), "of one primitive after the other")


def _is_of(example: Example, params: Any, operands: Sequence[Array]) -> bool:
    """Return whether an example's NumPy function applies to operands."""
    if example.reference is None or dict(example.params) != params or len(example.operands) != len(operands):
        return False
    return all(
        in_range(x, *example.range_of(i)) and is_inexact(x.dtype) == is_inexact(given.dtype)
        and (x.dtype == np.bool_) == (given.dtype == np.bool_)
        for i, (x, given) in enumerate(zip(operands, example.operands, strict=True))
    )  # fmt: skip


def check_numpy(case: Case) -> None:
    """Check equations against the NumPy functions of their primitives' examples."""
    values, asked = values_of(case), False
    for eqn in case.program.eqns:
        operands = [values[v] if isinstance(v, Var) else np.asarray(v.val, v.aval.dtype) for v in eqn.invars]
        example = next((e for e in examples_of(eqn.primitive.name) if _is_of(e, eqn.params, operands)), None)
        if example is None or example.reference is None:
            continue
        out = example.reference(*operands, **eqn.params)
        for v, right in zip(eqn.outvars, out if eqn.primitive.multiple_results else [out], strict=True):
            right = np.asarray(right).astype(v.aval.dtype)
            compare(values[v], right, f"a result of {eqn.primitive.name}", None, scale=2 * example.tolerance)
        asked = True
    if not asked:
        raise NotApplicable("no equation has a NumPy function")


# -- compiled ----------------------------------------------------------------------------------------------------


def check_jit(case: Case) -> None:
    """Check that the compiled program has the same results."""
    jit = exported("jit")
    if jit is None:
        raise NotApplicable("nothing compiles")
    outs = jit(lambda *xs: case(*xs))(*case.values)
    _require_types(case, map(get_aval, outs), ", compiled,")
    same(outs, case.outs(), case.bounds(), "of the compiled program")


def check_stablehlo(case: Case) -> None:
    """Check that StableHLO's reference interpreter has the same results for the program's translation."""
    jit = exported("jit")
    if jit is None:
        raise NotApplicable("nothing compiles")
    from corejax_xla_backend import hlo

    if not all(v.aval.size for eqn in every_eqn(case.program) for v in (*eqn.invars, *eqn.outvars)):
        raise NotApplicable("the interpreter ends its process on some empty operands")
    if any(dtypes.is_extended(aval.dtype) for aval in (*case.program.in_avals, *case.program.out_avals)):
        raise NotApplicable("arguments or results of extended dtypes, such as keys")
    lowered = jit(lambda *xs: case(*xs)).lower(*case.values)
    if "stablehlo.custom_call" in lowered.as_text():
        raise NotApplicable("the interpreter does not support custom calls")
    outs = interpreter.run(*hlo.program_and_operands(lowered, *case.values))
    same(outs, case.outs(), case.bounds(), "of StableHLO's interpreter")


# -- batches -----------------------------------------------------------------------------------------------------


def check_vmap(case: Case) -> None:
    """Check that vmap agrees with a loop, both directly and after staging."""
    axes = nests.batch_axes(case)
    if not case.values:
        raise NotApplicable("no operands")
    batch = nests.batched_values(case, axes)
    steps = [case.at(values) for values in nests.rows(case, [i for i, a in enumerate(axes) if a is not None])]
    wanted = [np.stack(column) for column in zip(*(step.outs() for step in steps), strict=True)]
    bounds = [np.stack(column) for column in zip(*(step.bounds() for step in steps), strict=True)]
    with nests.undefined_is_not_applicable():
        got = corejax.vmap(lambda *xs: case(*xs), tuple(axes))(*batch)
    same(got, wanted, bounds, f"of vmap with in_axes={tuple(axes)}")
    same(nests.nest(case, "vmap").outs(), wanted, bounds, f"of vmap with in_axes={tuple(axes)}, staged,")


# -- derivatives -------------------------------------------------------------------------------------------------


def check_jvp(case: Case) -> None:
    """Check that tangents agree with finite differences, both directly and after staging."""
    staged = nests.nest(case, "jvp")
    ts = nests.tangents(case)
    xs = [case.values[i] for i in case.smooth]
    with nests.undefined_is_not_applicable():
        primals, moved = corejax.jvp(nests.moving(case, case.values), tuple(xs), tuple(ts))
    same([*primals, *moved], staged.outs(), staged.bounds(), "of jvp")
    coarsest = max(_precisions(case))
    if coarsest > 1e-6:
        raise NotApplicable("half precision is too coarse for finite differences")
    step = 1e-5 if coarsest < 1e-10 else 2e-3
    wanted, bounds = _differences(case, ts, step, coarsest)
    # Add the bounds of the tangents themselves: at a tie that rounding would break there are several derivatives.
    bounds = [a + b for a, b in zip(bounds, staged.bounds()[len(primals) :], strict=True)]
    what = "(a tangent) of jvp, against differences,"
    try:
        same(moved, wanted, bounds, what)
    except CheckFailure:
        spread = _spread(case, ts, moved, step)
        same(moved, wanted, [a + b for a, b in zip(bounds, spread, strict=True)], what)


def _precisions(case: Case) -> Iterator[float]:
    every = {x.dtype for x in case.values} | {v.aval.dtype for eqn in every_eqn(case.program) for v in eqn.outvars}
    return (epsilon(dtype) for dtype in every if is_inexact(dtype))


def _along(case: Case, ts: Sequence[Array], h: float) -> list[Any]:
    """Return the operands moved by a step along the tangents."""
    xs = [case.values[i] for i in case.smooth]
    moved = [np.asarray(x + h * t).astype(x.dtype) for x, t in zip(xs, ts, strict=True)]
    return replaced(case.values, case.smooth, moved)


def _differences(case: Case, ts: Sequence[Array], step: float, eps: float) -> tuple[list[Array], list[Array]]:
    """Return central differences along ts and their error bounds, which grow if one-sided differences disagree."""

    def at(h: float) -> list[Array]:
        outs = case.at(_along(case, ts, h)).outs()
        return [wide(outs[k]) for k in case.smooth_outs]

    f0 = [wide(case.outs()[k]) for k in case.smooth_outs]
    noise = [np.max([np.abs(wide(run[k]) - f) for run in noisy_runs(case.program, case.values)], axis=0)
             for k, f in zip(case.smooth_outs, f0, strict=True)]  # fmt: skip
    far_plus, far_minus, plus, minus = (at(h) for h in (step, -step, step / 2, -step / 2))
    found, bounds = [], []
    with np.errstate(all="ignore"):
        for k, out in enumerate(case.smooth_outs):
            central, coarse = (plus[k] - minus[k]) / step, (far_plus[k] - far_minus[k]) / (2 * step)
            sides = np.abs(plus[k] + minus[k] - 2 * f0[k]) / (step / 2)
            sides = np.maximum(sides, np.abs(far_plus[k] + far_minus[k] - 2 * f0[k]) / step)
            size = np.abs(central)[np.isfinite(central)].max(initial=1.0)
            inputs = max((float(np.abs(wide(x)).max(initial=1.0)) for x in case.values), default=1.0)
            bound = 4 * np.abs(central - coarse) + 2 * sides + 4 * noise[k] / step
            bound = bound + ((2e-5 if eps < 1e-10 else 2e-3) + 20 * eps * inputs / step) * size
            bound = bound + 20 * eps * np.abs(f0[k]).max(initial=0.0) / step
            bounds.append(np.where(np.isfinite(bound) & np.isfinite(central), bound, np.inf))
            found.append(np.asarray(np.nan_to_num(central)).astype(case.program.out_avals[out].dtype))
    return found, bounds


def _spread(case: Case, ts: Sequence[Array], moved: Sequence[Array], step: float) -> list[Array]:
    """Return how much the tangents vary within the step of the differences, which average over them.

    In a chaotic iteration, or near a jump, a tangent may be far from that average.
    """
    spread = [np.zeros(t.shape) for t in moved]
    for h in np.linspace(-step, step, _SAMPLES):
        values = _along(case, ts, h)
        near = nests.nest(case, "jvp").at([*values, *ts]).outs()[-len(moved) :]
        with np.errstate(all="ignore"):
            spread = [np.maximum(s, np.abs(wide(a) - wide(b))) for s, a, b in zip(spread, near, moved, strict=True)]
    return [np.where(np.isfinite(s), s, np.inf) for s in spread]


def check_linearize(case: Case) -> None:
    """Check that linearize has the tangents of jvp."""
    staged, count = nests.nest(case, "jvp"), len(case.smooth_outs)
    xs = [case.values[i] for i in case.smooth]
    with nests.undefined_is_not_applicable():
        primals, linear = corejax.linearize(nests.moving(case, case.values), *xs)
        moved = linear(*nests.tangents(case))
    same([*primals, *moved], staged.outs(), staged.bounds(), "of linearize")
    again = nests.nest(case, "linearize")
    same(again.outs(), staged.outs()[count:], staged.bounds()[count:], "of linearize, staged,")


def check_vjp(case: Case) -> None:
    """Check that vjp is the transpose of jvp, both directly and after staging."""
    forward, backward, count = nests.nest(case, "jvp"), nests.nest(case, "vjp"), len(case.smooth_outs)
    xs = [case.values[i] for i in case.smooth]
    ts, cts = nests.tangents(case), nests.cotangents(case)
    with nests.undefined_is_not_applicable():
        pulled = list(corejax.vjp(nests.moving(case, case.values), *xs)[1](list(cts)))
    same(pulled, backward.outs(), backward.bounds(), "of vjp")
    moved, pulled = forward.outs()[count:], backward.outs()
    bounds = [*forward.bounds()[count:], *backward.bounds()]
    if not all(np.all(np.isfinite(b)) for b in bounds):
        raise NotApplicable("a derivative is not finite, or not continuous")
    allowed, size = 0.0, 0.0
    for weights, values, limits in ((cts, moved, bounds[: len(moved)]), (ts, pulled, bounds[len(moved) :])):
        for w, value, limit in zip(weights, values, limits, strict=True):
            allowed += float(np.sum(np.abs(wide(w)) * limit))
            size += float(np.sum(np.abs(wide(w) * wide(value))))
    allowed += size * max(tolerance(x.dtype) for x in (*moved, *pulled))
    left, right = inner(cts, moved), inner(ts, pulled)
    if not abs(left - right) <= allowed:
        raise CheckFailure(f"<ct, jvp(t)> is {left!r}, <vjp(ct), t> is {right!r}; they may differ by {allowed:.1e}")


def check_split(case: Case) -> None:
    """Check that known and unknown halves, and partial evaluation with a staged rest, have the same results."""
    for unknowns in splitting.masks(case):
        outs = in_halves(case.program, case.values, unknowns)
        same(outs, case.outs(), case.bounds(), f"of the halves of the program {named(unknowns)}")
        outs = finished_later(lambda *xs: case(*xs), case.values, case.program.in_avals, unknowns)
        same(outs, case.outs(), case.bounds(), f"run {named(unknowns)}")


RELATIONS: dict[str, Relation] = {
    "types": check_types,
    "text": check_text,
    "eager": check_eager,
    "numpy": check_numpy,
    "vmap": check_vmap,
    "jvp": check_jvp,
    "linearize": check_linearize,
    "vjp": check_vjp,
    "transpose": splitting.transposed,
    "split": check_split,
    "jit": check_jit,
    "stablehlo": check_stablehlo,
}


def known(name: str) -> bool:
    """Return whether a name consists of a known relation and known nests."""
    what, *chain = name.split(" of ")
    return what in RELATIONS and all(each in nests.NESTS for each in chain)


def ask(case: Case, name: str) -> tuple[str, bool] | None:
    """Check a relation of a case.

    Args:
        case: the program with operands.
        name: the relation and its nests, as in "jit of vjp".

    Returns:
        None if the relation holds; else a message and whether an error was raised.

    Raises:
        NotApplicable: the relation does not apply to the case.
        KeyError: there is no such relation or nest.
    """
    what, *chain = name.split(" of ")
    relation = RELATIONS[what]
    try:
        with quiet(), nests.undefined_is_not_applicable():
            for each in reversed(chain):
                case = nests.nest(case, each)
            case.outs()  # raises NotApplicable first if no example admits the operands
            relation(case)
    except NotApplicable:
        raise
    except CheckFailure as failure:
        return str(failure), False
    except Exception as error:
        return f"{type(error).__name__}: {error}", True
    return None


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress warnings about derived rules and about infinities."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", DerivedRuleWarning)
        yield
