"""The jaxpr type checker.

Invariants of a well-typed program:
1. every variable is bound before it is used, and bound once;
2. every equation has outputs of the number and types that its primitive's abstract-eval rule returns;
3. constants have the types of their constvars.
`check_partial_eval` checks in addition that the types of the two halves of a program fit the whole program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.base.lists import partition_list
from corejax.base.texts import error_text, message_of
from corejax.core.avals import ShapedArray, get_aval
from corejax.errors import CorejaxError, JaxprTypeError
from corejax.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, opened, subjaxprs
from corejax.messages.source_info import describe_source


def check_jaxpr(program: Jaxpr | ClosedJaxpr) -> tuple[list[ShapedArray], list[ShapedArray]]:
    """Check a program, and the programs in its equations' parameters.

    Returns:
        Its type: the avals of arguments and of outputs.

    Raises:
        JaxprTypeError: an invariant is violated; the message shows the equation in context and the user's line.
    """
    return _check(program, {})


# Programs that have been checked, by id: a program in many equations is checked once.
_Checked = dict[int, Any]


def _check(program: Jaxpr | ClosedJaxpr, checked: _Checked) -> tuple[list[ShapedArray], list[ShapedArray]]:
    jaxpr = opened(program)
    if isinstance(program, ClosedJaxpr):
        for v, const in zip(jaxpr.constvars, program.consts, strict=True):
            if get_aval(const) is not v.aval:
                raise JaxprTypeError(f"a constant of type {get_aval(const)} stands for a constvar of type {v.aval}")
    bound: set[Var] = set()
    for v in (*jaxpr.constvars, *jaxpr.invars):
        if v in bound:
            raise JaxprTypeError(f"binder {v!r} is bound twice in\n{jaxpr}")
        bound.add(v)
    for index, eqn in enumerate(jaxpr.eqns):
        try:
            _check_eqn(eqn, bound, checked)
        except JaxprTypeError as error:
            located = JaxprTypeError(f"{error}\n{_context(jaxpr, index)}")
            located.eqn = eqn
            raise located from error.__cause__
    out_avals = [_check_atom(v, bound, "as an output") for v in jaxpr.outvars]
    return jaxpr.in_avals, out_avals


def _check_eqn(eqn: JaxprEqn, bound: set[Var], checked: _Checked) -> None:
    name = eqn.primitive.name
    in_avals = tuple(_check_atom(v, bound, f"by primitive {name!r}") for v in eqn.invars)
    for sub in subjaxprs(eqn.params):
        if id(sub) in checked:
            continue
        try:
            _check(sub, checked)
        except JaxprTypeError as error:
            raise JaxprTypeError(f"in a program of primitive {name!r}: {error}") from error.__cause__
        checked[id(sub)] = sub
    try:
        out_avals = eqn.primitive.abstract(in_avals, eqn.params)
    except CorejaxError:
        raise
    except Exception as error:  # a rule may raise anything for parameters that its function would never pass
        reason = message_of(error) if isinstance(error, TypeError | ValueError) else error_text(error)
        raise JaxprTypeError(f"primitive {name!r} does not take its operands: {reason}") from error
    if len(out_avals) != len(eqn.outvars):
        raise JaxprTypeError(
            f"primitive {name!r} has {len(out_avals)} results, but the equation binds {len(eqn.outvars)}"
        )
    for v, aval in zip(eqn.outvars, out_avals, strict=True):
        if v.aval is not aval:
            types = f"returns {aval}, but the equation binds a variable of type {v.aval}"
            raise JaxprTypeError(f"primitive {name!r} {types}")
        if v in bound:
            raise JaxprTypeError(f"variable {v!r} is bound twice, the second time by primitive {name!r}")
        bound.add(v)


def _check_atom(atom: object, bound: set[Var], used: str) -> ShapedArray:
    if not isinstance(atom, Var | Literal):
        raise JaxprTypeError(f"{atom!r}, used {used}, is neither a variable nor a literal")
    if isinstance(atom, Var) and atom not in bound:
        raise JaxprTypeError(f"unbound variable {atom!r} is used {used}")
    return atom.aval


def _context(jaxpr: Jaxpr, index: int) -> str:
    from corejax.ir.printer import eqn_in_context

    place = describe_source(jaxpr.eqns[index].source_info)
    return f"in equation {index}, from {place}:\n{eqn_in_context(jaxpr, index)}"


def check_partial_eval(
    whole: Jaxpr, known: Jaxpr, unknown: Jaxpr, unknowns_in: Sequence[bool], unknowns_out: Sequence[bool]
) -> None:
    """Check that `known: a1 -> (b1, res)` and `unknown: (res, a2) -> b2` fit `whole: (a1, a2) -> (b1, b2)`.

    Raises:
        JaxprTypeError: the halves do not compose to the whole.
    """
    (ins, outs), (ins1, outs1), (ins2, outs2) = check_jaxpr(whole), check_jaxpr(known), check_jaxpr(unknown)
    a1, a2 = partition_list(unknowns_in, ins)
    b1, b2 = partition_list(unknowns_out, outs)
    residuals = outs1[len(b1) :]
    for what, expected, got in (
        ("arguments of the known half", a1, ins1),
        ("outputs of the known half", b1, outs1[: len(b1)]),
        ("residuals", residuals, ins2[: len(residuals)]),
        ("arguments of the unknown half", a2, ins2[len(residuals) :]),
        ("outputs of the unknown half", b2, outs2),
    ):
        if expected != got:
            raise JaxprTypeError(f"partial evaluation: {what} have types {got}, expected {expected}")
