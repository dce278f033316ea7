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
    """Transform a function so that it returns failures of checks as a value.

        checked = corejax.jit(checkify.checkify(f, errors=checkify.all_checks))
        error, out = checked(x)
        error.throw()

    The function is traced, as by `jit`, so that its Python control flow cannot depend on the values of arrays. Jitted
    functions, loops, conditionals and functions with custom derivatives inside it keep their structure.

    Args:
        fun: function of any arguments that returns arrays (in pytrees).
        errors: union of the sets of checks to enable: `user_checks` (`check` in the function), `nan_checks` (a
            primitive returns NaN), `div_checks` (a divisor is zero, also an integer), `index_checks` (an index is out
            of bounds); `float_checks`, `automatic_checks` and `all_checks` are unions of these. Other checks are
            removed.

    Returns:
        A function of the same arguments that returns a pair: an `Error`, with the first failure in program order, and
        the result of `fun`.

    Raises:
        TypeError: if `fun` is not a function, or `errors` is not a set of kinds of errors.
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

        def results_and_error(*traced: Any) -> list[Any]:
            rest, _ = partition_list(arrays, leaves)
            return [*checks.run(flat, merge_lists(arrays, rest, traced), debug), *checks.leaves()]

        operands = list(map(_as_value, select_list(arrays, leaves)))
        jaxpr, consts = stage(results_and_error, [get_aval(x) for x in operands], debug)
        outs = list(map(_as_value, eval_jaxpr(jaxpr, consts, operands)))
        count = flat.out_tree.num_leaves
        return Error(checks.error_type(), outs[count:]), tree.tree_unflatten(flat.out_tree, outs[:count])

    checked.__doc__ = f"Run {fun_name(fun)} with checks, and return the error and the result.\n\n{fun.__doc__ or ''}"
    return checked


def _is_traced(x: Any) -> bool:
    """Return whether an argument is traced. Python numbers, and arguments that are no arrays, are static."""
    return isinstance(x, Tracer) or (is_array_like(x) and not isinstance(x, bool | int | float | complex))


def _as_value(x: Any) -> Any:
    return x if isinstance(x, Tracer) else as_array(x)


def _positions(flags: Sequence[bool]) -> tuple[int, ...]:
    return tuple(i for i, flag in enumerate(flags) if flag)


def _kinds(fun: Any, errors: Any) -> ErrorSet:
    kinds = frozenset(errors) if isinstance(errors, Iterable) and not isinstance(errors, str) else frozenset({errors})
    wrong = [kind for kind in kinds if not (isinstance(kind, type) and issubclass(kind, CheckedError))]
    if wrong:
        raise TypeError(
            f"checkify of {fun_name(fun)}: errors must be a set of kinds, such as checkify.user_checks | "
            f"checkify.nan_checks, got {errors!r}"
        )
    return kinds


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
