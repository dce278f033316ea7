"""The names of `jax.core` and `jax.extend.core` that corejax lacks: traces that libraries subclass, and helpers."""

from __future__ import annotations

import contextlib
import typing
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import corejax
from corejax import extend
from corejax.extend import (
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    ShapedArray,
    Var,
    bottom_trace,
    current_trace,
    dtypes,
    is_array_like,
    jaxpr_as_fun,
    set_current_trace,
    transforms,
)
from corejax.extend import programs as programs_of_extend
from corejax.extend.programs import Literal

Atom = typing.Union[Var, Literal]  # noqa: UP007  # libraries read its __args__


class _TypeOfAvals(type):
    """The metaclass that makes every array type an instance of `AbstractValue`."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, ShapedArray) or type.__instancecheck__(cls, instance)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, ShapedArray) or type.__subclasscheck__(cls, subclass)


class AbstractValue(metaclass=_TypeOfAvals):
    """The base class of types."""


class DropVar(Var):
    """JAX's variable for an unused result; corejax has only one class of variables."""


class Effect:
    """The base class of effects; in corejax an effect is a string."""


class TraceTag:
    """JAX's tag of the tracers of one transformation."""


# -- traces --------------------------------------------------------------------------------------------------------


class Trace(extend.Trace):
    """The base class of a library's interpreters.

    Its `process_primitive` returns one value for one result. `process_custom_jvp_call` and `process_custom_vjp_call`,
    if a subclass has them, are called for functions with custom derivatives.
    """

    def __init__(self, parent: extend.Trace | None = None) -> None:
        parent = parent or getattr(self, "parent_trace", None) or current_trace()
        super().__init__(parent)
        self.parent_trace = parent

    def full_raise(self, x: Any) -> Any:
        """Return the value unchanged; corejax has no trace levels."""
        return x

    def invalidate(self) -> None:
        """End the trace."""
        self.alive = False

    def is_valid(self) -> bool:
        """Return whether the trace has not ended."""
        return self.alive

    def __init_subclass__(cls, **kwargs: Any) -> None:
        process = vars(cls).get("process_primitive")
        if process is not None:
            cls.process_primitive = _processing(process)  # type: ignore[method-assign]  # wrapped
        super().__init_subclass__(**kwargs)


def _processing(process: Callable[..., Any]) -> Callable[..., list[Any]]:
    """Adapt a library's `process_primitive` to corejax, where it returns a list."""

    def process_primitive(self: Any, primitive: Any, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        custom = _CUSTOM.get(primitive.name)
        if custom is not None and hasattr(self, f"process_{primitive.name}"):
            out = custom(self, primitive, args, params)
        else:
            out = process(self, primitive, args, equation_params(params))
        return list(out) if isinstance(out, list | tuple) else [out]

    return process_primitive


def equation_params(params: dict[str, Any]) -> dict[str, Any]:
    """Return parameters as an equation has them; a `jit`, for example, has its program as `jaxpr`."""
    return JaxprEqn(None, [], [], params).params  # type: ignore[arg-type]  # only its parameters are read


def _custom_jvp_call(trace: Any, primitive: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
    fun, jvp = primitive.get_bind_params(params)["subfuns"]
    symbolic = params["symbolic_zeros"]
    return trace.process_custom_jvp_call(_CustomJvpCall(), fun, jvp, args, symbolic_zeros=symbolic)


def _custom_vjp_call(trace: Any, primitive: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
    fun = _Wrapped(jaxpr_as_fun(params["call_jaxpr"]))
    return trace.process_custom_vjp_call(primitive, fun, None, None, args, out_trees=None, symbolic_zeros=False)


_CUSTOM = {"custom_jvp_call": _custom_jvp_call, "custom_vjp_call": _custom_vjp_call}


class _CustomJvpCall:
    """The primitive that a library's trace gets to bind transformed functions."""

    name = "custom_jvp_call"
    multiple_results = True

    def bind_with_trace(self, trace: extend.Trace, args: Sequence[Any], avals: Any, params: dict[str, Any], /) -> Any:
        """Call `subfuns` of the parameters, a function and its JVP rule, on flat arguments."""
        fun, rule = params["subfuns"]
        call = corejax.custom_jvp(lambda *xs: fun.call_wrapped(*xs))

        @call.defjvp
        def jvp(primals: Any, tangents: Any) -> tuple[list[Any], list[Any]]:
            outs = rule.call_wrapped(*primals, *tangents)
            half = len(outs) // 2
            return list(outs[:half]), list(outs[half:])

        with set_current_trace(trace):
            return list(call(*args))


class _Wrapped:
    """A function with the interface of `linear_util`."""

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.f = self.call_wrapped = fun
        self.debug_info = None


@contextlib.contextmanager
def take_current_trace() -> Iterator[extend.Trace]:
    """Yield the current trace; operations inside the context are evaluated."""
    trace = current_trace()
    with set_current_trace(bottom_trace()):
        yield trace


def eval_context() -> Any:
    """Return a context manager in which operations are evaluated."""
    return set_current_trace(bottom_trace())


def find_top_trace(args: Any = ()) -> extend.Trace:
    """Return the trace that will interpret the next operation."""
    return current_trace()


def get_opaque_trace_state(convention: Any = None) -> extend.Trace:
    """Return an object that compares equal only within the same transformation."""
    return current_trace()


def trace_state_clean() -> bool:
    """Return whether no transformation is active."""
    return current_trace() is bottom_trace()


def unsafe_am_i_under_a_jit() -> bool:
    """Return whether a program is being traced."""
    return transforms.recording_trace() is not None


def unsafe_get_axis_names() -> list[Any]:
    """Return the names of the mapped axes in scope."""
    return [name for name, _ in transforms.axes_in_scope()]


# -- programs and types ----------------------------------------------------------------------------------------------


def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence[Any], *args: Any, propagate_source_info: bool = True) -> list[Any]:
    """Evaluate a program."""
    return programs_of_extend.eval_jaxpr(jaxpr, consts, args)


def jaxprs_in_params(params: dict[str, Any]) -> Iterator[Jaxpr]:
    """Yield the programs among an equation's parameters."""
    for program in programs_of_extend.subjaxprs(params):
        yield program.jaxpr if isinstance(program, ClosedJaxpr) else program


def subjaxprs(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """Yield the programs in the parameters of a program's equations."""
    for eqn in jaxpr.eqns:
        yield from jaxprs_in_params(eqn.params)


def new_jaxpr_eqn(
    invars: Sequence[Any],
    outvars: Sequence[Any],
    primitive: Any,
    params: dict[str, Any],
    effects: Any = (),
    source_info: Any = None,
    ctx: Any = None,
) -> JaxprEqn:
    """Return an equation."""
    return JaxprEqn(primitive, list(invars), list(outvars), dict(params), source_info)


def gensym(*args: Any) -> Callable[[ShapedArray], Var]:
    """Return a function that creates variables."""
    return Var


def mapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """Return the type of one element of a batch along an axis."""
    return aval if axis is None else transforms.mapped_aval(aval, axis)


def unmapped_aval(size: int, axis: int | None, aval: ShapedArray, explicit_mesh_axis: Any = None) -> ShapedArray:
    """Return the type of a batch with a new axis."""
    return aval if axis is None else transforms.unmapped_aval(size, axis, aval)


def valid_jaxtype(x: Any) -> bool:
    """Return whether a value is an array or a number."""
    return bool(is_array_like(x))


def concrete_or_error(force: Any, value: Any, context: str = "") -> Any:
    """Convert a value by `force`, which raises an error for a tracer."""
    return value if force is None else force(value)


def primal_dtype_to_tangent_dtype(dtype: Any) -> Any:
    """Return the dtype of tangents."""
    return dtype if dtypes.is_inexact(dtype) else transforms.float0


def raise_to_shaped(aval: ShapedArray, weak_type: bool | None = None) -> ShapedArray:
    """Return the type of an array, weak or not as given."""
    return aval if weak_type is None else aval.update(weak_type=weak_type)


def full_lower(x: Any) -> Any:
    """Return the value unchanged; corejax has no trace levels."""
    return x


no_effects: frozenset[Any] = frozenset()
