"""Check a primitive in another framework that a bridge connects.

A nest of transformations is applied twice: by the framework to the bridged function, and by corejax to the function
itself. The outermost transformation is compared with its meaning (finite differences, a loop over the batch), so that
the check finds both a wrong bridge and a wrong rule of the primitive.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from corejax.extend import dtypes, jvp_rules, xla_translations
from corejax_testing.arrays import Array, compare_each, direction, is_inexact, replaced
from corejax_testing.calls import Call, accepts, host
from corejax_testing.checks.registry import rule_at_fault
from corejax_testing.finite import step_and_tolerance
from corejax_testing.outcomes import CheckFailure, NotApplicable
from corejax_testing.transformations import GRAD, JIT, JVP, SCAN, VMAP, Both, Transformation
from corejax_testing.variations import in_other_dtypes

Function = Callable[..., Sequence[Any]]
Derivative = Callable[[Function, list[Any], list[Any]], Sequence[Any]]

# Innermost first.
NESTS: tuple[tuple[Transformation, ...], ...] = (
    (),
    (JIT,),
    (VMAP,),
    (SCAN,),
    (JVP,),
    (GRAD,),
    (VMAP, JIT),
    (VMAP, VMAP),
    (VMAP, SCAN),
    (JVP, JVP),
    (JVP, GRAD),
    (GRAD, JVP),
    (GRAD, GRAD),
    (JVP, VMAP),
    (VMAP, GRAD),
    (GRAD, VMAP, JIT),
    (SCAN, GRAD),
    (SCAN, GRAD, VMAP),
    (JVP, GRAD, JIT),
    (GRAD, GRAD, VMAP),
)


@dataclass(frozen=True)
class Framework:
    """The functions of a framework that the check uses. They take and return sequences of the framework's arrays.

    Attributes:
        name: the name of the check, "jax".
        bridge: converts a corejax function that returns a list of arrays to a function of the framework.
        array: converts a NumPy array to the framework's; raises `NotApplicable` if the framework lacks the dtype.
        numpy: the inverse of `array`.
        maps: by name, the transformations "jit", "vmap" and "scan" of functions; "jit" returns the results of the
            compiled function.
        derivatives: "jvp", `(fun, xs, tangents) -> tangents`, and "grad", `(fun, xs, cotangents) -> cotangents`.
        context: returns a context in which everything runs.
    """

    name: str
    bridge: Callable[[Function], Function]
    array: Callable[[Array], Any]
    numpy: Callable[[Any], Array]
    maps: Mapping[str, Callable[[Function], Function]]
    derivatives: Mapping[str, Derivative]
    context: Callable[[], AbstractContextManager[Any]] = nullcontext


def check_in_framework(framework: Framework, call: Call, rng: np.random.Generator) -> None:
    """Check that a primitive has the same results, derivatives and batches in a framework as in corejax.

    Raises:
        CheckFailure: they differ, or the framework raises an error.
        NotApplicable: the primitive cannot be bridged: it has effects, needs a named axis, or has an operand or a
            result of a dtype that the framework lacks.
    """
    call.require_alone()
    if call.closed().effects:
        raise NotApplicable("it has effects")
    with framework.context():
        require_dtypes(framework, call)
        _check_results(framework, call, rng)
        for example in in_other_dtypes(call.primitive, call.example):
            with suppress(NotApplicable):
                _check_results(framework, Call.of(call.primitive, example, rng), rng)
        _check_results(framework, _without_elements(call), rng)
        wide = widened(call)
        for nest in applicable_nests(wide):
            check_nest(framework, wide, nest, rng)


def require_dtypes(framework: Framework, call: Call) -> None:
    """Raise NotApplicable if the framework lacks the dtype of an operand or a result."""
    for x in (*call.values, *host(call(*call.values))):
        framework.array(x)


def widened(call: Call) -> Call:
    """Return the application in float64 and complex128, or itself if its inexact results would stay narrow.

    Such a primitive rounds its operands to a narrow dtype. In an optimised program XLA may omit the rounding, so that
    programs with other fusions differ by it; numbers of the example's own dtypes need no rounding.
    """
    wide = call.widened()
    outs = [a.dtype for a in wide.avals_out if is_inexact(a.dtype)]
    return wide if not outs or any(dtype.itemsize >= (16 if dtype.kind == "c" else 8) for dtype in outs) else call


def _without_elements(call: Call) -> Call:
    """Return the call with empty operands if the primitive is elementwise, else the call itself."""
    if "elementwise" not in call.primitive.tags:
        return call
    scalars = not any(x.ndim for x in call.values)
    empty = call.at([np.zeros((0, 2), x.dtype) if x.ndim or scalars else x for x in call.values])
    return empty if accepts(empty) else call


def _check_results(framework: Framework, call: Call, rng: np.random.Generator) -> None:
    """Compare results and cotangents with corejax's own, in the operands' dtypes."""
    bridged = framework.bridge(call)
    rounding = 4 * call.example.tolerance
    wanted = host(call(*call.values))
    got = _run(framework, bridged, call.values, call, "")
    compare_each(got, wanted, "result", f" in {framework.name}", _run_rule(call), scale=rounding)
    outs = [i for i, y in enumerate(wanted) if is_inexact(y.dtype)]
    if not (call.inexact and outs and jvp_rules.find(call.primitive) and _has_tangents(call)):
        return
    zs = [*call.values, *(direction(rng, wanted[k]) for k in outs)]
    ours = host(_differentiated(_corejax_vjp, call.inexact, outs, len(call.values))(call)(*zs))
    differentiated = _differentiated(framework.derivatives["grad"], call.inexact, outs, len(call.values))(bridged)
    got = _run(framework, differentiated, zs, call, "grad")
    compare_each(got, ours, "cotangent", f" in {framework.name}", "transpose", scale=rounding)


def _has_tangents(call: Call) -> bool:
    narrow = any(dtypes.is_extended(x.dtype) or x.dtype.itemsize < 2 for x in call.values)
    return not narrow and _is_derivative(call)


def _is_derivative(call: Call) -> bool:
    """Return whether the rules compute the derivative by the author's intent; those of `stop_gradient` do not."""
    return not any(call.leaves_out(name) for name in ("jvp", "vjp", "second_order", "pairs"))


def _corejax_vjp(fun: Function, xs: list[Any], cts: list[Any]) -> Any:
    import corejax

    return corejax.vjp(lambda *a: list(fun(*a)), *xs)[1](list(cts))


def applicable_nests(call: Call) -> list[tuple[Transformation, ...]]:
    """Return the nests that apply to a call; those with derivatives only if the call is differentiable."""
    try:
        call.moving()
        step_and_tolerance([*call.values, *host(call(*call.values))])
        smooth = jvp_rules.find(call.primitive) is not None and call.size <= 24 and _is_derivative(call)
    except (NotApplicable, ValueError):
        smooth = False
    reverse = "reverse_only" in call.primitive.tags
    return [
        nest
        for nest in NESTS
        if (smooth or not any(t.smooth for t in nest)) and not (reverse and JVP in nest) and (call.values or not nest)
    ]


def check_nest(framework: Framework, call: Call, nest: Sequence[Transformation], rng: np.random.Generator) -> None:
    """Check one nest of transformations, innermost first.

    Raises:
        CheckFailure: the framework's results differ from the meaning of the outermost transformation.
    """
    fun: Any
    fun, xs = call.varying()
    both: Both = (xs, call.again(rng, call.fixed).varying()[1])
    bridged = framework.bridge(fun)
    outer = None
    for transformation in nest:
        xs = both[0]
        try:
            inputs = transformation.inputs(fun, both, rng)
            outer = transformation.slow(fun, xs)
            bridged = _applied(framework, transformation, bridged, fun, xs)
            fun, both = transformation.fast(fun, xs), inputs
            wanted = host(outer(*both[0]))
        except Exception:  # corejax's own checks report errors of corejax
            return
    if outer is None:
        wanted = host(fun(*xs))
    elif VMAP in nest and call.leaves_out("vmap"):  # its batches are not a loop by design
        wanted = host(fun(*both[0]))
    if not all(np.all(np.isfinite(w)) for w in wanted if w.dtype.kind in "fc"):
        return
    names = " of ".join(t.name for t in reversed(nest))
    got = _run(framework, bridged, both[0], call, names)
    smooth = [x for x in (*both[0], *wanted) if is_inexact(x.dtype)]
    allowed = step_and_tolerance(smooth, order=len(nest))[1] if any(t.smooth for t in nest) else None
    compare_each(got, wanted, "result", f" of {names} in {framework.name}", nest[-1].rule if nest else _run_rule(call),
                 allowed=allowed, scale=10 * call.example.tolerance)  # fmt: skip


def _applied(
    framework: Framework, transformation: Transformation, bridged: Function, fun: Function, xs: Sequence[Array]
) -> Function:
    """Apply the framework's transformation; the corejax function `fun` shows which results have derivatives."""
    if not transformation.smooth:
        return framework.maps[transformation.name](bridged)
    which = [i for i, x in enumerate(xs) if is_inexact(x.dtype)]
    outs = [i for i, y in enumerate(host(fun(*xs))) if is_inexact(y.dtype)]
    return _differentiated(framework.derivatives[transformation.name], which, outs, len(xs))(bridged)


def _differentiated(
    derivative: Derivative, which: Sequence[int], outs: Sequence[int], count: int
) -> Callable[[Function], Function]:
    """Return a transformation to functions of `count` operands followed by tangents or cotangents."""

    def transform(fun: Function) -> Function:
        def transformed(*args: Any) -> Sequence[Any]:
            xs, directions = list(args[:count]), list(args[count:])

            def part(*moving: Any) -> list[Any]:
                found = list(fun(*replaced(xs, which, moving)))
                return [found[k] for k in outs]

            return derivative(part, [xs[i] for i in which], directions)

        return transformed

    return transform


def _run_rule(call: Call) -> str | None:
    """Return the kind of the rule by which a framework runs the primitive itself, if the primitive has one."""
    return None if xla_translations.find(call.primitive) is None else "xla_translation"


def _run(framework: Framework, fun: Function, values: Sequence[Array], call: Call, names: str) -> list[Array]:
    operands = [framework.array(x) for x in values]
    try:
        return [framework.numpy(y) for y in fun(*operands)]
    except (CheckFailure, NotApplicable):
        raise
    except Exception as error:
        text = f"{names + ' in ' if names else ''}{framework.name} raises {type(error).__name__}: {error}"
        raise CheckFailure(text, rule_at_fault(error, call.primitive)) from error
