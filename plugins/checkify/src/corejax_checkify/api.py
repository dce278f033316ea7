"""Run-time checks of traced programs: `corejax.checkify`, in JAX `jax.experimental.checkify`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from corejax.extend import (
    DebugInfo,
    FlatFunction,
    Tracer,
    as_array,
    fun_name,
    get_aval,
    is_array_like,
    merge_lists,
    partition_list,
    stage,
    tree,
)
from corejax.extend.messages import api_boundary
from corejax.extend.programs import eval_jaxpr, select_list
from corejax_checkify.check import check as check
from corejax_checkify.check import debug_check as debug_check
from corejax_checkify.error import Error as Error
from corejax_checkify.error import check_error as check_error
from corejax_checkify.failures import BatchedError as BatchedError
from corejax_checkify.failures import CheckedError as CheckedError
from corejax_checkify.failures import CorejaxRuntimeError as CorejaxRuntimeError
from corejax_checkify.failures import DivisionByZeroError as DivisionByZeroError
from corejax_checkify.failures import FailedCheckError as FailedCheckError
from corejax_checkify.failures import NaNError as NaNError
from corejax_checkify.failures import OOBError as OOBError
from corejax_checkify.interpreter import Checks as Checks
from corejax_checkify.interpreter import checked_jaxpr as checked_jaxpr
from corejax_checkify.interpreter import checkify_rules as checkify_rules
from corejax_checkify.state import ErrorType as _ErrorType

JaxRuntimeError = CorejaxRuntimeError  # the name that JAX's users know

ErrorCategory = type[CheckedError]
ErrorSet = frozenset[ErrorCategory]

user_checks: ErrorSet = frozenset({FailedCheckError})
nan_checks: ErrorSet = frozenset({NaNError})
index_checks: ErrorSet = frozenset({OOBError})
div_checks: ErrorSet = frozenset({DivisionByZeroError})
float_checks: ErrorSet = nan_checks | div_checks
automatic_checks: ErrorSet = float_checks | index_checks
all_checks: ErrorSet = automatic_checks | user_checks

init_error = Error(_ErrorType(), ())


def checkify(fun: Callable[..., Any], errors: Iterable[type[CheckedError]] = user_checks) -> Callable[..., Any]:
    """The function with what fails in it as a value.

        checked = corejax.jit(checkify.checkify(f, errors=checkify.all_checks))
        error, out = checked(x)
        error.throw()

    It is traced, as by `jit`: what it does in Python does not depend on the values of arrays. Jitted functions, loops,
    conditionals and functions with derivatives of their own inside it stay what they are.

    Args:
        fun: function of anything; it returns arrays (in pytrees).
        errors: what to look for, a union of sets: `user_checks` (`check` in the function), `nan_checks` (a primitive
            gives NaN), `div_checks` (a divisor is zero, of integers too), `index_checks` (an index is out of bounds);
            `float_checks`, `automatic_checks` and `all_checks` are unions of these. Checks that are not looked for are
            left out.

    Returns:
        A function of the same arguments that gives a pair: an `Error`, of the first failure in the order of the
        program, and what `fun` gives.

    Raises:
        TypeError: `fun` is not a function, or `errors` is no set of kinds of errors.
    """
    if not callable(fun):
        raise TypeError(f"checkify transforms a function, got {fun!r} of type {type(fun).__name__}")
    kinds = _kinds(fun, errors)

    @api_boundary
    @functools.wraps(fun, assigned=("__module__", "__name__", "__qualname__"))
    def checked(*args: Any, **kwargs: Any) -> tuple[Error, Any]:
        leaves, in_tree = tree.tree_flatten((args, kwargs))
        arrays = [_is_traced(x) for x in leaves]
        checks, debug = Checks(kinds), DebugInfo(fun, "checkify", in_tree, _positions(arrays))
        flat = FlatFunction(fun, in_tree, with_kwargs=True)

        def whole(*traced: Any) -> list[Any]:
            rest, _ = partition_list(arrays, leaves)
            return [*checks.run(flat, merge_lists(arrays, rest, traced), debug), *checks.leaves()]

        operands = list(map(_as_value, select_list(arrays, leaves)))
        jaxpr, consts = stage(whole, [get_aval(x) for x in operands], debug)
        outs = list(map(_as_value, eval_jaxpr(jaxpr, consts, operands)))
        count = flat.out_tree.num_leaves
        return Error(checks.error_type(), outs[count:]), tree.tree_unflatten(flat.out_tree, outs[:count])

    checked.__doc__ = f"{fun_name(fun)}, with what fails in it as a value.\n\n{fun.__doc__ or ''}"
    return checked


def _is_traced(x: Any) -> bool:
    """Whether an argument is traced: arrays are; Python's numbers, and what is no array, are part of the program."""
    return isinstance(x, Tracer) or (is_array_like(x) and not isinstance(x, bool | int | float | complex))


def _as_value(x: Any) -> Any:
    return x if isinstance(x, Tracer) else as_array(x)


def _positions(flags: Sequence[bool]) -> tuple[int, ...]:
    return tuple(i for i, flag in enumerate(flags) if flag)


def _kinds(fun: Any, errors: Any) -> ErrorSet:
    found = frozenset(errors) if isinstance(errors, Iterable) and not isinstance(errors, str) else frozenset({errors})
    wrong = [kind for kind in found if not (isinstance(kind, type) and issubclass(kind, CheckedError))]
    if wrong:
        raise TypeError(
            f"checkify of {fun_name(fun)}: errors is a set of kinds, such as checkify.user_checks | "
            f"checkify.nan_checks, got {errors!r}"
        )
    return found


__all__ = [
    "BatchedError",
    "CheckedError",
    "Checks",
    "CorejaxRuntimeError",
    "DivisionByZeroError",
    "Error",
    "ErrorCategory",
    "FailedCheckError",
    "JaxRuntimeError",
    "NaNError",
    "OOBError",
    "all_checks",
    "automatic_checks",
    "check",
    "check_error",
    "checked_jaxpr",
    "checkify",
    "checkify_rules",
    "debug_check",
    "div_checks",
    "float_checks",
    "index_checks",
    "init_error",
    "nan_checks",
    "user_checks",
]
