"""Comparing what the documents print with what corejax prints, layout aside."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from corejax.extend import ClosedJaxpr, Jaxpr, JaxprEqn, ShapedArray, Var, close_over_consts
from corejax.extend.programs import Literal, check_jaxpr
from corejax.ir.interpret import literal_value
from corejax.ir.jaxpr import Atom
from corejax.ir.printer import Scope, _Printer, jaxpr_text
from corejax.ir.values import const_text, has_programs, literal_scalar, scalar_text, value_text


def tokens(text: str) -> list[str]:
    """The words of a jaxpr's text without layout: `( c )` and `(c,)`, ` .` and ` ;` and `let` are all the same.

    Weak types, which autodidax does not have, are left out too.
    """
    text = re.sub(r"\.(?=\s|$)", " . ", text.replace("~", ""))
    text = re.sub(r"[;,]", " ", text)
    text = re.sub(r"([(){}]|\[(?=\s)|(?<=\s)\])", r" \1 ", text)
    return [word for word in text.split() if word not in ("let", ".")]


def long_text(program: Jaxpr | ClosedJaxpr) -> str:
    """A program as autodidax prints it: long types, every literal a constant with a binder."""
    return jaxpr_text(hoist_literals(program) if isinstance(program, ClosedJaxpr) else program, types="long")


def hoist_literals(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with a constvar in place of each distinct literal: the same function of its arguments.

    Literals of the same type and bits share a constvar. New constvars follow those of the program, in order
    of first use. Programs in parameters stay as they are.
    """
    jaxpr = closed.jaxpr
    constvars: dict[Any, Var] = {}
    consts: list[Any] = []

    def hoisted(atom: Atom) -> Var:
        if not isinstance(atom, Literal):
            return atom
        key = (atom.aval, literal_scalar(atom).tobytes())
        if key not in constvars:
            constvars[key] = Var(atom.aval)
            consts.append(literal_value(atom))
        return constvars[key]

    eqns = [
        eqn.replace(invars=[hoisted(v) for v in eqn.invars]) if any(type(v) is Literal for v in eqn.invars) else eqn
        for eqn in jaxpr.eqns
    ]
    outvars = [hoisted(v) for v in jaxpr.outvars]
    binders = [*jaxpr.constvars, *constvars.values()]
    return ClosedJaxpr(Jaxpr(binders, jaxpr.invars, eqns, outvars, jaxpr.debug_info), [*closed.consts, *consts])


def untyped(program: Jaxpr | ClosedJaxpr) -> str:
    """A program without types, as the notes on jaxprs print it."""
    printer = _UntypedPrinter()
    printer.program(program, "", "", consts=False)
    return "\n".join(printer.lines)


class _UntypedPrinter(_Printer):
    """Things stand to the right of what they belong to, strings have no quotes: as JAX printed before it had types."""

    def program(self, program: Jaxpr | ClosedJaxpr, pad: str, first: str, consts: bool) -> None:
        jaxpr = program.jaxpr if isinstance(program, ClosedJaxpr) else program
        scope = Scope(jaxpr)
        constvars = [scope.names[v] for v in jaxpr.constvars]
        if consts and isinstance(program, ClosedJaxpr):
            constvars = [f"{v}={const_text(c)}" for v, c in zip(constvars, program.consts, strict=True)]
        binders = " ".join(scope.names[v] for v in jaxpr.invars)
        self.lines.append(f"{pad}{first}{{ lambda {' '.join(constvars)} ; {binders}.")
        pad = " " * (len(pad) + len(first) + 2)
        for index, eqn in enumerate(jaxpr.eqns):
            self.eqn(eqn, scope, pad + ("    " if index else "let "))
        outs = [self.atom(v, scope) for v in jaxpr.outvars]
        self.lines.append(f"{pad}in ({outs[0]},) }}" if len(outs) == 1 else f"{pad}in ({', '.join(outs)}) }}")

    def eqn(self, eqn: JaxprEqn, scope: Scope, pad: str) -> None:
        line = pad + self.head(eqn, scope)
        operands = "".join(" " + self.atom(v, scope) for v in eqn.invars)
        if eqn.params:
            line += "[ "
            for name, value in sorted(eqn.params.items()):
                self.value(value, line, f"{name}=")
                line = " " * len(line)
            self.lines[-1] += " ]" + operands
        else:
            self.lines.append(line + operands)

    def value(self, value: Any, pad: str, first: str) -> None:
        line = pad + first
        if isinstance(value, ClosedJaxpr | Jaxpr):
            self.program(value, line, "", consts=True)
        elif has_programs(value):
            line += "( "
            for item in value:
                self.value(item, line, "")
                line = " " * len(line)
            self.lines[-1] += " )"
        else:
            self.lines.append(line + (value if isinstance(value, str) else value_text(value)))

    def typed(self, name: str, var: Var) -> str:
        return name

    def atom(self, atom: Any, scope: Scope) -> str:
        return scalar_text(literal_scalar(atom)) if isinstance(atom, Literal) else super().atom(atom, scope)


def assert_prints(program: Jaxpr | ClosedJaxpr, expected: str) -> None:
    """A program's text is the document's, names included."""
    assert tokens(long_text(program)) == tokens(expected)


def assert_prints_up_to_names(program: Jaxpr | ClosedJaxpr, expected: str) -> None:
    """A program's text is the document's, with variables named in the order in which they come."""
    assert renamed(tokens(long_text(program))) == renamed(tokens(expected))


def renamed(words: Iterable[str]) -> list[str]:
    """Tokens with each bound variable (`name:type`) as `v0`, `v1`, ... in order."""
    names: dict[str, str] = {}
    out = []
    for word in words:
        name, colon, kind = word.partition(":")
        if colon and name.isalpha():
            names.setdefault(name, f"v{len(names)}")
        out.append(names.get(name, name) + colon + kind)
    return out


def type_text(closed: ClosedJaxpr) -> str:
    """A program's checked type as autodidax prints it, `(float64[]) -> (float64[])`; constants are arguments."""
    hoisted = hoist_literals(closed)
    ins, outs = check_jaxpr(close_over_consts(hoisted.jaxpr).jaxpr)
    return f"({_avals(ins)}) -> ({_avals(outs)})"


def _avals(avals: Iterable[ShapedArray]) -> str:
    return ", ".join(aval.str_short(short_dtypes=False).replace("~", "") for aval in avals)


def printed(*values: Any) -> str:
    """What `print` writes."""
    return " ".join(str(value) for value in values)
