"""Programs as graphs for pictures: a node for each argument, constant, equation and output, an edge for each use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from corejax.extend import ClosedJaxpr, Jaxpr, JaxprEqn, Var
from corejax.extend.messages import describe_source, scope_of, scope_text
from corejax.extend.printing import (
    Scope,
    eqn_text,
    has_programs,
    literal_scalar,
    scalar_text,
    type_text,
    value_text,
)
from corejax.extend.programs import Literal

_PARAMS, _WIDTH = 3, 40  # maximal number and length of the parameters that a node shows


class Node(NamedTuple):
    """A node in a picture of a program.

    Attributes:
        kind: "argument", "constant", "equation" or "output".
        title: name of an argument, primitive (with its operands if some are literals), or position of an output.
        details: parameters with short values.
        values: bound variables as in the program's text: `a:f32[3]`.
        note: text of the equation, with the user's line and named scopes.
        programs: (name of the parameter, program) for the programs in the equation's parameters.
    """

    kind: str
    title: str
    details: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    note: str = ""
    programs: tuple[tuple[str, Graph], ...] = ()


class Edge(NamedTuple):
    """A use of a value: positions of the two nodes, and the value as the text has it."""

    source: int
    target: int
    value: str


class Graph(NamedTuple):
    """One program.

    Attributes:
        name: name of the traced function, or "".
        nodes: constants, arguments, equations in order, outputs.
        edges: uses, in the order of the using nodes.
    """

    name: str
    nodes: list[Node]
    edges: list[Edge]


def program_graph(program: Jaxpr | ClosedJaxpr) -> Graph:
    """Convert a program to nodes and edges; variables have the names of the program's text."""
    jaxpr = program.jaxpr if isinstance(program, ClosedJaxpr) else program
    return _Builder(jaxpr).graph


class _Builder:
    """The graph of a program under construction; `homes` maps each variable to the node that binds it."""

    def __init__(self, jaxpr: Jaxpr) -> None:
        self.scope = Scope(jaxpr)
        self.homes: dict[Var, int] = {}
        info = jaxpr.debug_info
        self.graph = Graph("" if info is None else info.name, [], [])
        names = [] if info is None else info.arg_names()
        if len(names) != len(jaxpr.invars):  # the program was changed since it was traced
            names = [self.scope.names[v] for v in jaxpr.invars]
        for v in jaxpr.constvars:
            self.add(Node("constant", "constant", values=(self.typed(v),)), [v])
        for v, name in zip(jaxpr.invars, names, strict=True):
            self.add(Node("argument", name, values=(self.typed(v),)), [v])
        for eqn in jaxpr.eqns:
            self.equation(eqn)
        for i, atom in enumerate(jaxpr.outvars):
            title = f"output {i}" if len(jaxpr.outvars) > 1 else "output"
            self.add(Node("output", title, values=() if type(atom) is Var else (self.atom(atom),)), [])
            self.uses([atom])

    def add(self, node: Node, binds: Sequence[Var]) -> None:
        """Add a node that binds variables."""
        self.homes.update(dict.fromkeys(binds, len(self.graph.nodes)))
        self.graph.nodes.append(node)

    def equation(self, eqn: JaxprEqn) -> None:
        """Add the node of an equation, and edges from its operands."""
        values = tuple(f"{self.scope.bound(v)}:{type_text(v.aval)}" for v in eqn.outvars)
        title = eqn.primitive.name
        if any(isinstance(v, Literal) for v in eqn.invars):
            title = f"{title}({', '.join(map(self.atom, eqn.invars))})"
        programs = tuple((name, program_graph(inner)) for name, inner in _programs(eqn.params))
        details = tuple(_details(eqn.params))
        note = _note(eqn, None if programs else self.scope)  # inner programs are drawn, so their text is left out
        self.add(Node("equation", title, details, values, note, programs), eqn.outvars)
        self.uses(eqn.invars)

    def uses(self, atoms: Sequence[Any]) -> None:
        """Add edges to the last node, one for each variable."""
        target = len(self.graph.nodes) - 1
        for v in dict.fromkeys(v for v in atoms if type(v) is Var):
            self.graph.edges.append(Edge(self.homes[v], target, self.typed(v)))

    def typed(self, v: Var) -> str:
        """Format a variable with its type, as in the program's text."""
        return f"{self.scope.names[v]}:{type_text(v.aval)}"

    def atom(self, atom: Var | Literal) -> str:
        """Format a variable or a literal, as in the program's text."""
        return scalar_text(literal_scalar(atom)) if isinstance(atom, Literal) else self.scope.names[atom]


def _programs(params: dict[str, Any]) -> Iterator[tuple[str, ClosedJaxpr | Jaxpr]]:
    """Yield the programs among parameters with their names: `jaxpr`, `branches[1]`."""
    for name, value in sorted(params.items()):
        if isinstance(value, ClosedJaxpr | Jaxpr):
            yield name, value
        elif isinstance(value, tuple | list):
            for i, item in enumerate(value):
                if isinstance(item, ClosedJaxpr | Jaxpr):
                    yield f"{name}[{i}]", item


def _details(params: dict[str, Any]) -> Iterator[str]:
    """Yield the texts of parameters that are short and not empty."""
    texts = (f"{k}={value_text(v)}" for k, v in sorted(params.items()) if not (_is_empty(v) or has_programs(v)))
    short = [text for text in texts if len(text) <= _WIDTH and "<opaque" not in text]
    yield from short[:_PARAMS]


def _is_empty(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_empty, value))
    return value is None or value is False or value == ""


def _note(eqn: JaxprEqn, scope: Scope | None) -> str:
    """Return the text of an equation, with the names of a scope, and the user's line."""
    lines = [] if scope is None else [eqn_text(eqn, scope)]
    if eqn.source_info is not None:
        lines.append(describe_source(eqn.source_info))
        lines += filter(None, [scope_text(scope_of(eqn.source_info))])
    return "\n".join(lines)
