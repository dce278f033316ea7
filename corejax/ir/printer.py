"""Jaxprs as text, in a canonical form: equal programs have equal texts. `parse_jaxpr` is the inverse.

    { lambda ; a:f32[3,4] b:f32[4]. let
        c:f32[3,4] = add a 1.0:f32[]
        d:f32[3] = dot_general[
          dimension_numbers=(([1], [0]), ([], []))
          preferred_element_type=float32
        ] c b
      in (d,) }

Variables are named a, b, ... in print order, separately in each program; an output that is not used is `_`; parameters
are sorted by name. A weak type has a `~`: `a:~f32[]`. Time and memory are linear in the length of the text.
"""

from __future__ import annotations

import itertools
import re
import string
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from corejax.core.avals import ShapedArray
from corejax.ir.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, opened, programs_of, variables_read
from corejax.ir.values import const_text, has_programs, literal_scalar, scalar_text, type_text, value_text
from corejax.messages.source_info import describe_source, scope_of, scope_text

RESERVED = frozenset({"in", "inf", "lambda", "let", "nan"})  # words of the grammar, which are not names of variables
BARE_PRIMITIVE = r"""[^\s\[\](){}=,;:'"#]+"""  # names of primitives that are printed without quotes
_bare_primitive = re.compile(BARE_PRIMITIVE)


def _names() -> Iterator[str]:
    """Yield a, b, ..., z, aa, ab, ..."""
    for length in itertools.count(1):
        for letters in itertools.product(string.ascii_lowercase, repeat=length):
            if (name := "".join(letters)) not in RESERVED:
                yield name


def jaxpr_text(
    program: Jaxpr | ClosedJaxpr,
    *,
    types: str = "short",
    source_info: bool = False,
    consts: bool = False,
    requires: bool = False,
) -> str:
    """Return a program as text.

    Args:
        program: the program.
        types: "short" for `a:f32[3]`, "long" for `a:float32[3]`.
        source_info: add a comment to each equation with the user's line and its named scopes and transformations.
        consts: show the values of a closed program's own constants, `{ lambda a:f32[2]=[1.0, 2.0]; ...`. Constants of
            programs in parameters are always shown, because they are part of the equation.
        requires: begin with comments that name the distributions of the primitives, for texts that are stored
            (`# requires corejax-acme 1.0: acme.cube`). If one is missing later, the parser's error names it.

    Raises:
        ValueError: `types` is neither "short" nor "long".
    """
    if types not in ("short", "long"):
        raise ValueError(f"types is 'short' or 'long', got {types!r}")
    printer = _Printer(long=types == "long", source_info=source_info)
    if requires:
        printer.lines += _requirements(program)
    printer.program(program, "", "", consts)
    return "\n".join(printer.lines)


def _requirements(program: Jaxpr | ClosedJaxpr) -> Iterator[str]:
    primitives: dict[str, set[str]] = {}
    for primitive in {eqn.primitive: None for jaxpr in programs_of(program) for eqn in jaxpr.eqns}:
        origin = primitive.provenance
        if origin.distribution is not None:
            name = primitive.name if _bare_primitive.fullmatch(primitive.name) else repr(primitive.name)
            primitives.setdefault(f"{origin.distribution} {origin.version or '?'}", set()).add(name)
    for distribution, names in sorted(primitives.items()):
        yield f"# requires {distribution}: {' '.join(sorted(names))}"


def eqn_text(eqn: JaxprEqn, scope: Scope | None = None) -> str:
    """Return one equation as text, with the names of `scope`, or with new names, outputs first: `a:f32[] = add b c`."""
    printer = _Printer()
    printer.eqn(eqn, scope or Scope(None), "")
    return "\n".join(printer.lines)


def eqn_in_context(jaxpr: Jaxpr, index: int, around: int = 5) -> str:
    """Return an equation, marked with an arrow, and its neighbours as text; the program may be ill-typed.

    Variables have the same names as in the text of the whole program.
    """
    printer, scope = _Printer(), Scope(jaxpr)
    first_lines = []  # for each equation
    for eqn in jaxpr.eqns[: index + around + 1]:
        first_lines.append(len(printer.lines))
        printer.eqn(eqn, scope, "    ")
    printer.lines[first_lines[index]] = "--> " + printer.lines[first_lines[index]][4:]
    return "\n".join(printer.lines[first_lines[max(0, index - around)] :])


class Scope:
    """Names of variables in one program, chosen at their first use.

    `used` has the variables that equations and outputs read; None if all variables count as used.
    """

    def __init__(self, jaxpr: Jaxpr | None) -> None:
        self.names: dict[Var, str] = defaultdict(_names().__next__)
        self.used: set[Any] | None = None
        if jaxpr is not None:
            self.used = variables_read(jaxpr.eqns, jaxpr.outvars)
            for v in (*jaxpr.constvars, *jaxpr.invars):
                self.names[v]

    def bound(self, var: Var) -> str:
        """Return the name of an equation's output, `_` if it is not used."""
        return self.names[var] if self.used is None or var in self.used else "_"


class _Printer:
    """Lays out lines of text. `pad` is the indentation of a construct, `first` the text before it on its first line."""

    def __init__(self, long: bool = False, source_info: bool = False) -> None:
        self.lines: list[str] = []
        self.long = long
        self.source_info = source_info
        self._types: dict[ShapedArray, str] = {}

    def program(self, program: Jaxpr | ClosedJaxpr, pad: str, first: str, consts: bool) -> None:
        jaxpr = opened(program)
        scope = Scope(jaxpr)
        constvars = [self.typed(scope.names[v], v) for v in jaxpr.constvars]
        if consts and isinstance(program, ClosedJaxpr):
            constvars = [f"{v}={const_text(c)}" for v, c in zip(constvars, program.consts, strict=True)]
        binders = " ".join(self.typed(scope.names[v], v) for v in jaxpr.invars)
        self.lines.append(f"{pad}{first}{{ lambda {' '.join(constvars)}; {binders}. let")
        for eqn in jaxpr.eqns:
            self.eqn(eqn, scope, pad + "    ")
        texts = [self.atom(v, scope) for v in jaxpr.outvars]
        outs = f"  in ({texts[0]},) }}" if len(texts) == 1 else f"  in ({', '.join(texts)}) }}"
        if jaxpr.eqns:
            self.lines.append(pad + outs)
        else:
            self.lines[-1] += outs

    def eqn(self, eqn: JaxprEqn, scope: Scope, pad: str) -> None:
        head = pad + self.head(eqn, scope)
        operands = "".join(" " + self.atom(v, scope) for v in eqn.invars)
        params = sorted(eqn.params.items())
        if not params:
            self.lines.append(head + operands)
        elif len(params) == 1 and not has_programs(params[0][1]):
            name, value = params[0]
            self.lines.append(f"{head}[{name}={value_text(value, self.long)}]{operands}")
        else:
            self.lines.append(head + "[")
            for name, value in params:
                self.value(value, pad + "  ", f"{name}=")
            self.lines.append(f"{pad}]{operands}")
        if self.source_info and eqn.source_info is not None:
            inside = scope_text(scope_of(eqn.source_info))
            self.lines[-1] += f"  # {describe_source(eqn.source_info)}{f' in {inside}' if inside else ''}"

    def head(self, eqn: JaxprEqn, scope: Scope) -> str:
        """Return the outputs and the primitive of an equation as text."""
        name = eqn.primitive.name
        if name == "in" or not _bare_primitive.fullmatch(name):
            name = repr(name)
        if not eqn.outvars:
            return str(name)
        return f"{' '.join(self.typed(scope.bound(v), v) for v in eqn.outvars)} = {name}"

    def value(self, value: Any, pad: str, first: str) -> None:
        """Append a parameter's value, on several lines if it contains programs."""
        if isinstance(value, ClosedJaxpr | Jaxpr):
            self.program(value, pad, first, consts=True)
        elif has_programs(value):
            self.lines.append(f"{pad}{first}(")
            comma = "" if all(isinstance(item, ClosedJaxpr | Jaxpr) for item in value) else ","
            for item in value:
                self.value(item, pad + "  ", "")
                self.lines[-1] += comma
            self.lines.append(pad + ")")
        else:
            self.lines.append(f"{pad}{first}{value_text(value, self.long)}")

    def typed(self, name: str, var: Var) -> str:
        return f"{name}:{self.type(var.aval)}"

    def type(self, aval: ShapedArray) -> str:
        text = self._types.get(aval)
        if text is None:
            text = self._types[aval] = type_text(aval, self.long)
        return text

    def atom(self, atom: Atom, scope: Scope) -> str:
        if type(atom) is Var:
            return scope.names[atom]
        if isinstance(atom, Literal):
            return f"{scalar_text(literal_scalar(atom))}:{self.type(atom.aval)}"
        return repr(atom)  # the type checker prints ill-formed programs
