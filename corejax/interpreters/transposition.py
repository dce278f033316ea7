"""Transposition: turn a linear function around, so that cotangents flow backward.

    transpose : (a -o b) -> (b -o a)

It has no tracers: one pass walks a tape or a program backward with a dict from variables to cotangents. For each
equation, the transpose rule maps the outputs' cotangents to cotangents of the linear operands, which are added to those
of earlier uses. In a rule, `UndefPrimal` stands for a linear operand, which has a type but no value.

Invariants. `None` is the zero cotangent; an equation with only zero cotangents is skipped, so the work is proportional
to the part of the tape that the outputs need. When the pass reaches an equation, the cotangents of its outputs are
complete, because all equations that use them follow it; they are removed from the dict, which frees memory.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from corejax.arrays.array import Value
from corejax.arrays.structural import structural
from corejax.core.avals import FlatFun, Operands, ShapedArray, conform, get_aval
from corejax.core.primitive import Primitive
from corejax.core.trace import current_scope, state
from corejax.errors import NotLinearError
from corejax.interpreters.differentiability import nondifferentiable, refusing_transposition
from corejax.interpreters.jvp import Tangent, tangent_aval, zeros_of
from corejax.interpreters.staging import stage_closed
from corejax.ir.interpret import literal_value
from corejax.ir.jaxpr import Jaxpr, JaxprEqn, Var
from corejax.messages.source_info import inside, needed
from corejax.rules import RuleFn, transpose_rules
from corejax.rules.attribution import attribute_to_rule
from corejax.rules.run_rule import check_cotangents


class UndefPrimal:
    """The placeholder for a linear operand in a transpose rule.

    Attributes:
        aval: the type of the operand.
    """

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return f"UndefPrimal({self.aval.str_short()})"

    def _no_value(self, *_: object, **__: object) -> Any:
        raise NotLinearError(_not_linear(self.aval))

    # Conversions to a value, also by NumPy, mean that a rule multiplies two linear operands, say.
    __array__ = __float__ = __int__ = __index__ = __complex__ = __bool__ = __len__ = __iter__ = _no_value


def is_undef_primal(x: object) -> bool:
    """Whether `x` marks a linear operand."""
    return type(x) is UndefPrimal


def transpose_tape(eqns: list[JaxprEqn], cotangents: dict[Var, Value], wanted: Sequence[Var | None]) -> list[Tangent]:
    """Walk a tape backward.

    Args:
        eqns: equations; their `invars` are variables (linear) or values.
        cotangents: the cotangent of each output variable; the dict is modified.
        wanted: the variables to return cotangents of.

    Returns:
        A cotangent for each of `wanted`, None for zero.
    """
    table = transpose_rules.table
    add = structural.add
    previous, scope = state.source, current_scope()
    try:
        source = state.source = None
        for eqn in reversed(eqns):
            primitive = eqn.primitive
            if primitive.multiple_results:
                ct: Any = [cotangents.pop(v, None) for v in eqn.outvars]
                if all(c is None for c in ct):
                    continue
            else:
                ct = cotangents.pop(eqn.outvars[0], None)
                if ct is None:
                    continue
            invars = eqn.invars
            operands = []
            for x in invars:
                operands.append(UndefPrimal(x.aval) if type(x) is Var else x)
            rule = table.get(primitive) or transpose_rules.lookup(primitive)
            if eqn.source_info is not source:  # equations that one rule recorded share it
                source = eqn.source_info
                state.source = source if source is None or not scope else inside(scope, source)
            if primitive.linear_in and len(primitive.linear_in) < len(invars):
                check_linear(primitive, invars)
            cts_in = rule(ct, *operands, **eqn.params)
            if not isinstance(cts_in, (list, tuple)) or len(cts_in) != len(operands):
                check_cotangents(primitive, cts_in, _linear_avals(eqn))
            for x, c in zip(invars, cts_in, strict=True):
                if c is not None and type(x) is Var:
                    if getattr(c, "aval", None) is not x.aval:
                        check_cotangents(primitive, cts_in, _linear_avals(eqn))
                        c = conform(c, x.aval, cotangent=True)
                    earlier = cotangents.get(x)
                    cotangents[x] = c if earlier is None else add(earlier, c)
    except NotLinearError as error:
        if not hasattr(error, "__notes__"):
            error.add_note(
                f"The function that is differentiated applies {primitive.name}{needed(' at', eqn.source_info)}. "
                "To check a primitive's JVP rule: corejax verify NAME --check linearity"
            )
        raise
    except Exception as error:
        attribute_to_rule(error, primitive, eqn.source_info, "transpose")
        raise
    finally:
        state.source = previous
    return [None if v is None else cotangents.get(v) for v in wanted]


def add_cotangent(cotangents: dict[Var, Value], v: Var, ct: Value) -> None:
    """Add a cotangent to that of the same variable."""
    ct = conform(ct, v.aval, cotangent=True)
    cotangents[v] = structural.add(cotangents[v], ct) if v in cotangents else ct


def backward_pass(jaxpr: Jaxpr, consts: Operands, args: Operands, cts: Sequence[Tangent]) -> list[Tangent]:
    """Transpose a program with respect to its linear arguments.

    Equations that do not depend on a linear argument are evaluated first; the others form a tape, which is walked
    backward.

    Args:
        jaxpr: the program.
        consts: values of its constvars.
        args: values of its arguments, `UndefPrimal` for linear arguments.
        cts: cotangents of its outputs, None for zero.

    Returns:
        A cotangent for each argument; None for zero and for arguments that are not linear.
    """
    env: dict[Var, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    env.update((v, x) for v, x in zip(jaxpr.invars, args, strict=True) if type(x) is not UndefPrimal)

    def read(atom: object) -> Any:
        return env.get(atom, atom) if type(atom) is Var else literal_value(atom)

    linear = []
    previous, scope = state.source, current_scope()
    try:
        for eqn in jaxpr.eqns:
            operands = [read(v) for v in eqn.invars]
            if any(type(x) is Var for x in operands):
                linear.append(JaxprEqn(eqn.primitive, operands, eqn.outvars, eqn.params, eqn.source_info))
            else:
                source = eqn.source_info
                state.source = source if source is None or not scope else inside(scope, source)
                env.update(
                    zip(eqn.outvars, state.trace.process_primitive(eqn.primitive, operands, eqn.params), strict=True)
                )
    finally:
        state.source = previous
    cotangents: dict[Var, Value] = {}
    for v, ct in zip(jaxpr.outvars, cts, strict=True):
        if ct is not None and type(v) is Var and v not in env:
            add_cotangent(cotangents, v, ct)
    wanted = [v if type(x) is UndefPrimal else None for v, x in zip(jaxpr.invars, args, strict=True)]
    return transpose_tape(linear, cotangents, wanted)


# -- checks ------------------------------------------------------------------------------------------------------


def check_linear(primitive: Primitive, invars: Sequence[Any]) -> None:
    """Check that the linear operands of an equation are among those in which the primitive is declared linear.

    Derived rules need no check, because they transpose the decomposition.

    Raises:
        NotLinearError: another operand is linear.
    """
    undeclared = [i for i, x in enumerate(invars) if type(x) is Var and i not in primitive.linear_in]
    if not undeclared or not transpose_rules.is_written(primitive):
        return
    aval = invars[undeclared[0]].aval
    raise NotLinearError(
        f"{_not_linear(aval)} It is operand {undeclared[0]} of primitive {primitive.name!r}, from "
        f"{primitive.provenance.owner}, which is declared linear in {list(primitive.linear_in)} only (linear_in)"
    )


def _not_linear(aval: ShapedArray) -> str:
    return (
        f"a function that has to be linear is not: a {aval.str_short(short_dtypes=False)} that depends on the tangents "
        "is multiplied by another such value, is a divisor, or controls a branch. JVP rules of primitives and of "
        "custom_jvp have to be linear in the tangents, and so do the functions given to linear_transpose, linear_call "
        "and custom_linear_solve."
    )


def _linear_avals(eqn: JaxprEqn) -> list[ShapedArray | None]:
    return [x.aval if type(x) is Var else None for x in eqn.invars]


# -- helpers for rules -------------------------------------------------------------------------------------------


def zero_cotangent(aval: ShapedArray) -> Value:
    """Return zeros of the cotangent type of an aval."""
    return zeros_of(tangent_aval(aval))


@transpose_rules.adapt.provide
def _with_zeros(primitive: Primitive, fn: RuleFn, flags: Mapping[str, object]) -> RuleFn:
    """Pass arrays of zeros to a rule of a primitive with several results that does not accept None."""
    if isinstance(fn, nondifferentiable):
        return refusing_transposition(primitive, fn)
    if flags.get("symbolic_zeros") or not primitive.multiple_results:
        return fn

    def rule(cts: Operands, /, *operands: object, **params: object) -> Any:
        if any(ct is None for ct in cts):
            avals = primitive.abstract(tuple(get_aval(x) for x in operands), params)
            cts = [zero_cotangent(a) if ct is None else ct for ct, a in zip(cts, avals, strict=True)]
        return fn(cts, *operands, **params)

    return rule


@transpose_rules.derivations.from_decomposition(symbolic_zeros=True)
def _transpose_of_decomposition(primitive: Primitive, body: FlatFun) -> RuleFn:
    def rule(ct: Any, /, *operands: Any, **params: object) -> list[Tangent]:
        closed = stage_closed(functools.partial(body, **params), [get_aval(x) for x in operands])
        return backward_pass(closed.jaxpr, closed.consts, operands, ct if primitive.multiple_results else [ct])

    return rule
