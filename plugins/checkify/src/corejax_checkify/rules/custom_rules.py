"""Rules of functions with custom rules: a checked function keeps its custom derivatives and its custom `vmap` rule.

If such a function is differentiated below the checks (`grad(checkify(f))`), its rule computes results and derivatives,
and the function itself computes the error. The computations of the rule are not checked. `checkify(grad(f))` checks
them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from corejax.extend import ClosedJaxpr, Primitive, dce_jaxpr, inline_closed
from corejax_checkify.interpreter import Checks, checked_jaxpr, for_primitive
from corejax_lax_basic import lax


class _Checked:
    """Base class of the rules of a checked function.

    Args:
        rule: the custom rule of the function.
        program: the checked function.
        num_errors: number of its last results that are leaves of its error.
        num_consts: number of its first arguments that it closes over; the custom rule does not take them.
    """

    def __init__(self, rule: Any, program: ClosedJaxpr, num_errors: int, num_consts: int) -> None:
        self.rule = rule
        self.program = program
        self.num_errors = num_errors
        self.num_consts = num_consts
        self.__name__ = getattr(rule, "__name__", type(rule).__name__)

    def errors(self, primals: Sequence[Any]) -> list[Any]:
        """Compute the error of the function, without derivative."""
        used = [False] * (len(self.program.out_avals) - self.num_errors) + [True] * self.num_errors
        program, _ = dce_jaxpr(self.program, used, instantiate=True)
        return inline_closed(program, [lax.stop_gradient(x) for x in primals])

    def refuse(self, perturbed: Sequence[bool]) -> None:
        """Raise TypeError if a closed-over value is being differentiated."""
        if any(perturbed[: self.num_consts]):
            raise TypeError(
                f"a function with a custom derivative ({self.__name__}) closes over a value that is being "
                "differentiated, but its rule differentiates only with respect to arguments. Pass the value "
                "as an argument."
            )


class CheckedJvp(_Checked):
    """The rule of a checked `custom_jvp` function."""

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Return results and tangents from the custom rule, and the error, without tangents, from the function."""
        self.refuse([t is not None for t in tangents])
        count = self.num_consts
        outs, tangents_out = self.rule.jvp(primals[count:], tangents[count:])
        return [*outs, *self.errors(primals)], [*tangents_out, *(None for _ in range(self.num_errors))]


class Forward(NamedTuple):
    """The result of a forward pass."""

    outs: list[Any]
    residuals: list[Any]
    pullback: Any


class CheckedPullback:
    """The backward pass of a checked `custom_vjp` function, which ignores cotangents of the error."""

    def __init__(self, pullback: Any, num_errors: int, num_consts: int) -> None:
        self.pullback = pullback
        self.num_errors = num_errors
        self.num_consts = num_consts
        self.__name__ = getattr(pullback, "__name__", type(pullback).__name__)

    def pull(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        """Return cotangents of all operands."""
        cts_in = self.pullback.pull(residuals, cts[: len(cts) - self.num_errors])
        return [*(None for _ in range(self.num_consts)), *cts_in]


class CheckedVjp(_Checked):
    """The rules of a checked `custom_vjp` function."""

    def fwd(self, primals: Sequence[Any], perturbed: Sequence[bool]) -> Forward:
        """Return results from the custom forward pass, and the error from the function."""
        self.refuse(perturbed)
        forward = self.rule.fwd(primals[self.num_consts :], perturbed[self.num_consts :])
        pullback = CheckedPullback(forward.pullback, self.num_errors, self.num_consts)
        return Forward([*forward.outs, *self.errors(primals)], forward.residuals, pullback)


def _with_custom_rule(
    primitive: Primitive,
    param: str,
    checked_rule: Callable[..., Any],
    checks: Checks,
    *operands: Any,
    call_jaxpr: ClosedJaxpr,
    num_consts: int,
    **params: Any,
) -> list[Any]:
    """Bind a call of the checked function, with a checked rule in the parameter `param`."""
    program, error_type = checked_jaxpr(call_jaxpr, checks.kinds)
    if error_type.failures:
        params[param] = checked_rule(params[param], program, len(error_type.avals()), num_consts)
        num_consts = 0
    outs = primitive.bind(*operands, call_jaxpr=program, num_consts=num_consts, **params)
    return checks.taken(outs, error_type)


def custom_vmap_call_checkify(
    primitive: Primitive, checks: Checks, *operands: Any, call_jaxpr: ClosedJaxpr, **params: Any
) -> list[Any]:
    """Bind the call of the function without checks for its results, and inline the checked function for its error."""
    program, error_type = checked_jaxpr(call_jaxpr, checks.kinds)
    num_outs = len(call_jaxpr.out_avals)
    used = [i < num_outs for i in range(len(program.out_avals))]
    results, _ = dce_jaxpr(program, used, instantiate=True)
    outs = primitive.bind(*operands, call_jaxpr=results, **params)
    if not error_type.failures:
        return list(outs)
    errors, _ = dce_jaxpr(program, [not flag for flag in used], instantiate=True)
    return checks.taken([*outs, *inline_closed(errors, operands)], error_type)


for_primitive("custom_jvp_call", _with_custom_rule, "jvp", CheckedJvp)
for_primitive("custom_vjp_call", _with_custom_rule, "vjp", CheckedVjp)
for_primitive("custom_vmap_call", custom_vmap_call_checkify)
