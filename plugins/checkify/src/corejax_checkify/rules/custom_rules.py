"""Functions with rules of their own, which they keep: a checked function has its author's derivatives and batches.

Where such a function is differentiated below the checks (`grad(checkify(f))`), its rule gives results and derivatives,
and the function says what failed; what its rule computes is not looked into. With `checkify(grad(f))` it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from corejax.extend import ClosedJaxpr, Primitive, dce_jaxpr, inline_closed
from corejax_checkify.interpreter import Checks, checked_jaxpr, for_primitive
from corejax_lax_basic import lax


class _Checked:
    """What the rules of a checked function have in common.

    Args:
        rule: the author's.
        program: the checked function.
        num_errors: how many of its results are leaves of its error.
        num_consts: how many of its arguments it closes over; its rule does not take them.
    """

    def __init__(self, rule: Any, program: ClosedJaxpr, num_errors: int, num_consts: int) -> None:
        self.rule = rule
        self.program = program
        self.num_errors = num_errors
        self.num_consts = num_consts
        self.__name__ = getattr(rule, "__name__", type(rule).__name__)

    def errors(self, primals: Sequence[Any]) -> list[Any]:
        """The error of the function, which has no derivative."""
        used = [False] * (len(self.program.out_avals) - self.num_errors) + [True] * self.num_errors
        program, _ = dce_jaxpr(self.program, used, instantiate=True)
        return inline_closed(program, [lax.stop_gradient(x) for x in primals])

    def refuse(self, perturbed: Sequence[bool]) -> None:
        """Refuse derivatives with respect to what the function closes over.

        Raises:
            TypeError: there is one.
        """
        if any(perturbed[: self.num_consts]):
            raise TypeError(
                f"a function with a derivative of its own ({self.__name__}) closes over a value that is being "
                "differentiated, but its rule only says how to differentiate with respect to arguments. Pass the value "
                "as an argument."
            )


class CheckedJvp(_Checked):
    """The rule of a checked `custom_jvp` function."""

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Results and their tangents by the author's rule; the error, without tangents, by the function."""
        self.refuse([t is not None for t in tangents])
        count = self.num_consts
        outs, tangents_out = self.rule.jvp(primals[count:], tangents[count:])
        return [*outs, *self.errors(primals)], [*tangents_out, *(None for _ in range(self.num_errors))]


class Forward(NamedTuple):
    """What a forward pass gives."""

    outs: list[Any]
    residuals: list[Any]
    pullback: Any


class CheckedPullback:
    """The backward pass of a checked `custom_vjp` function: what its error is has no cotangent."""

    def __init__(self, pullback: Any, num_errors: int, num_consts: int) -> None:
        self.pullback = pullback
        self.num_errors = num_errors
        self.num_consts = num_consts
        self.__name__ = getattr(pullback, "__name__", type(pullback).__name__)

    def pull(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        """Cotangents of all operands."""
        pulled = self.pullback.pull(residuals, cts[: len(cts) - self.num_errors])
        return [*(None for _ in range(self.num_consts)), *pulled]


class CheckedVjp(_Checked):
    """The rules of a checked `custom_vjp` function."""

    def fwd(self, primals: Sequence[Any], perturbed: Sequence[bool]) -> Forward:
        """Results by the author's forward pass; the error by the function."""
        self.refuse(perturbed)
        made = self.rule.fwd(primals[self.num_consts :], perturbed[self.num_consts :])
        pullback = CheckedPullback(made.pullback, self.num_errors, self.num_consts)
        return Forward([*made.outs, *self.errors(primals)], made.residuals, pullback)


def _with_own_rule(
    primitive: Primitive,
    param: str,
    made: Callable[..., Any],
    checks: Checks,
    *operands: Any,
    call_jaxpr: ClosedJaxpr,
    num_consts: int,
    **params: Any,
) -> list[Any]:
    """A call of the checked function, with the author's rules, in a parameter, for its results."""
    program, error_type = checked_jaxpr(call_jaxpr, checks.kinds)
    if error_type.failures:
        params[param] = made(params[param], program, len(error_type.avals()), num_consts)
        num_consts = 0
    outs = primitive.bind(*operands, call_jaxpr=program, num_consts=num_consts, **params)
    return checks.taken(outs, error_type)


def custom_vmap_call_checkify(
    primitive: Primitive, checks: Checks, *operands: Any, call_jaxpr: ClosedJaxpr, **params: Any
) -> list[Any]:
    """The call as it is, of the function without its checks; and, for its error, the checked function beside it."""
    program, error_type = checked_jaxpr(call_jaxpr, checks.kinds)
    num_outs = len(call_jaxpr.out_avals)
    used = [i < num_outs for i in range(len(program.out_avals))]
    results, _ = dce_jaxpr(program, used, instantiate=True)
    outs = primitive.bind(*operands, call_jaxpr=results, **params)
    if not error_type.failures:
        return list(outs)
    errors, _ = dce_jaxpr(program, [not flag for flag in used], instantiate=True)
    return checks.taken([*outs, *inline_closed(errors, operands)], error_type)


for_primitive("custom_jvp_call", _with_own_rule, "jvp", CheckedJvp)
for_primitive("custom_vjp_call", _with_own_rule, "vjp", CheckedVjp)
for_primitive("custom_vmap_call", custom_vmap_call_checkify)
