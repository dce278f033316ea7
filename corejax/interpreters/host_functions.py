"""Small programs that run often, written out as Python functions: a line for each equation.

`host_programs` goes from equation to equation, looks up each rule, and holds each result against its promise. That
takes as long as NumPy's functions take for small arrays. What a ufunc gives is known before it runs, from the types of
its operands; what other rules give is looked at here, too. Where something goes wrong, `host_programs` runs the
program again, and says where.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from sys import getrefcount
from typing import Any

import numpy as np

from corejax.attribution import note_origin
from corejax.avals import ShapedArray
from corejax.interpreters.impl_results import as_promised
from corejax.ir.jaxpr import Jaxpr, JaxprEqn, Var
from corejax.ownership import SOLE, in_own_memory
from corejax.rules import impl_rules

_LONGEST = 256  # equations
_LARGEST = 4096  # elements of a result: what is larger is given up as soon as nothing reads it any more
_KNOWN_KINDS = frozenset("biufc")  # NumPy's own; others are held in them, and have to be made what was promised

_COMMON = {
    "ndarray": np.ndarray,
    "asarray": np.asarray,
    "as_promised": as_promised,
    "in_own_memory": in_own_memory,
    "getrefcount": getrefcount,
    "SOLE": SOLE,
}
_CHECKED = """\
    out = {call}
    {given}if type(out) is not ndarray or out.dtype is not {type}.dtype or out.shape != {type}.shape:
        out = as_promised({eqn}.primitive, out, {type}, {eqn}.source_info)
    elif out.base is not None or getrefcount(out) > SOLE:
        out = in_own_memory(out, [{operands}], getrefcount(out) <= SOLE)
    out.setflags(False)
    {name} = out"""


def written_out(
    jaxpr: Jaxpr, literals: dict[Any, Any], rules: dict[Any, Callable[..., Any]], results: Callable[..., list[Any]]
) -> Callable[..., list[Any]] | None:
    """A function of a program's constants and arguments, NumPy arrays; None for programs that are long or not small.

    Args:
        jaxpr: the program.
        literals: their values.
        rules: the impl rules for NumPy arrays.
        results: evaluates an equation of another kind: `(eqn, rule or None, operands)` to a list.

    Returns:
        The function. It raises `TypeError` where values are of other types than the program's variables.
    """
    large = any(v.aval.size > _LARGEST for eqn in jaxpr.eqns for v in eqn.outvars)
    if large or len(jaxpr.eqns) > _LONGEST or jaxpr.effects:
        return None
    return _Writer(jaxpr, literals, rules, results).function()


class _Writer:
    """The text of a function, and the names in it."""

    def __init__(self, jaxpr: Jaxpr, literals: dict[Any, Any], rules: Any, results: Any) -> None:
        self.jaxpr = jaxpr
        self.rules = rules
        self.space: dict[str, Any] = {**_COMMON, "results": results}
        self.names: dict[Any, str] = {}
        for atom, value in literals.items():
            self.names[atom] = self.named("literal", value)
        self.lines: list[str] = []

    def named(self, word: str, value: Any) -> str:
        """A name for a value."""
        name = f"{word}_{len(self.space)}"
        self.space[name] = value
        return name

    def function(self) -> Callable[..., list[Any]]:
        """The function, compiled."""
        binders = [*self.jaxpr.constvars, *self.jaxpr.invars]
        for v in binders:
            name = self.names[v] = f"v{len(self.names)}"
            aval = self.named("type", v.aval)
            self.lines.append(f"    if {name}.dtype is not {aval}.dtype or {name}.shape != {aval}.shape:")
            self.lines.append(f"        raise TypeError({name!r})")
        looked_at = self.looked_at()
        for eqn in self.jaxpr.eqns:
            operands = [self.names[v] for v in eqn.invars]
            for v in eqn.outvars:
                self.names[v] = f"v{len(self.names)}"
            self.lines.append(self.step(eqn, operands, [self.names[v] for v in eqn.outvars], looked_at))
        arguments = ", ".join(self.names[v] for v in binders)
        outs = ", ".join(self.names[v] for v in self.jaxpr.outvars)
        text = "\n".join([f"def program({arguments}):", *self.lines, f"    return [{outs}]"])
        exec(compile(text, "<program written out>", "exec"), self.space)
        return self.space.pop("program")  # type: ignore[no-any-return]

    def looked_at(self) -> set[Any]:
        """Variables that are read-only: results, and operands of rules that could write to them."""
        outs = {v for v in self.jaxpr.outvars if type(v) is Var}
        return outs.union(*(eqn.invars for eqn in self.jaxpr.eqns if self.ufunc_of(eqn) is None))

    def step(self, eqn: JaxprEqn, operands: Sequence[str], outs: Sequence[str], looked_at: set[Any]) -> str:
        """The lines of an equation."""
        rule = self.rules.get(eqn.primitive)
        if rule is None or eqn.primitive.multiple_results:
            given = f"results({self.named('eqn', eqn)}, {self.named('rule', rule)}, [{', '.join(operands)}])"
            return f"    [{', '.join(outs)}] = {given}"
        ufunc, joined, [v] = self.ufunc_of(eqn), ", ".join(operands), eqn.outvars
        if ufunc is not None:
            call = f"{self.named(eqn.primitive.name.replace('.', '_'), ufunc)}({joined})"
            line = f"    {outs[0]} = {call if v.aval.shape else f'asarray({call})'}"
            return f"{line}\n    {outs[0]}.setflags(False)" if v in looked_at else line
        run = _prepared(eqn) or rule
        params = [f"**{self.named('params', eqn.params)}"] if run is rule and eqn.params else []
        call = f"{self.named('rule', run)}({', '.join([*operands, *params])})"
        names = {"eqn": self.named("eqn", eqn), "type": self.named("type", v.aval), "name": outs[0], "given": ""}
        if not v.aval.shape:  # NumPy gives its own scalars there
            scalar = self.named("scalar", v.aval.dtype.type)
            names["given"] = f"if type(out) is {scalar}:\n        out = asarray(out)\n    el"
        return _CHECKED.format(call=call, operands=joined, **names)

    def ufunc_of(self, eqn: JaxprEqn) -> np.ufunc | None:
        """The ufunc that an equation is, if it gives arrays of the promised type whenever its operands have theirs."""
        rule = self.rules.get(eqn.primitive)
        ufunc = _prepared(eqn) or (None if eqn.params else rule)
        if rule is None or type(ufunc) is not np.ufunc or len(eqn.outvars) != ufunc.nout or ufunc.nout != 1:
            return None
        avals, out = [v.aval for v in eqn.invars], eqn.outvars[0].aval
        return ufunc if _gives(ufunc, avals, out) else None


def _prepared(eqn: JaxprEqn) -> Callable[..., Any] | None:
    """What the impl rule is for the types and params of an equation, where its author says that (`prepared=`)."""
    rule = impl_rules.rule_of(eqn.primitive)
    prepare = None if rule is None else rule.flags.get("prepared")
    if prepare is None:
        return None
    try:
        return prepare([v.aval for v in eqn.invars], **eqn.params)  # type: ignore[no-any-return]
    except Exception as error:
        what = f"`prepared` of the impl rule of primitive {eqn.primitive.name!r}"
        note_origin(error, eqn.primitive, what, eqn.source_info)
        raise


def _gives(ufunc: np.ufunc, avals: Sequence[ShapedArray], out: ShapedArray) -> bool:
    if not _KNOWN_KINDS.issuperset(aval.dtype.kind for aval in (*avals, out)):
        return False
    try:
        found = ufunc.resolve_dtypes((*(aval.dtype for aval in avals), None))[-1]
        return found == out.dtype and np.broadcast_shapes(*(aval.shape for aval in avals)) == out.shape
    except (TypeError, ValueError):
        return False


def by_ufunc(
    ufunc: np.ufunc, avals: Sequence[ShapedArray], avals_out: Sequence[ShapedArray]
) -> Callable[..., list[Any]] | None:
    """A program that is one ufunc, of NumPy arrays; None where the ufunc gives other types."""
    kinds = {aval.dtype.kind for aval in (*avals, *avals_out)}
    if (len(avals), len(avals_out)) != (ufunc.nin, ufunc.nout) or not _KNOWN_KINDS.issuperset(kinds):
        return None
    try:
        found = ufunc.resolve_dtypes((*(aval.dtype for aval in avals), *(None,) * ufunc.nout))[ufunc.nin :]
        shape = np.broadcast_shapes(*(aval.shape for aval in avals))
    except (TypeError, ValueError):
        return None
    if any(dtype != aval.dtype or shape != aval.shape for dtype, aval in zip(found, avals_out, strict=True)):
        return None

    def one(*values: Any) -> list[Any]:
        return [np.asarray(ufunc(*values))]

    def several(*values: Any) -> list[Any]:
        return list(map(np.asarray, ufunc(*values)))

    return one if ufunc.nout == 1 else several
