"""Programs in Graphviz' language: `dot -Tsvg` draws them."""

from __future__ import annotations

from corejax.extend.messages import shown
from corejax_explain.drawing.graph import Graph, Node

_HEAD = """\
  compound=true; fontname="Helvetica"; fontsize=11;
  node [shape=box, style="rounded,filled", fillcolor="#eef2ff", color="#94a3b8", fontname="Helvetica", fontsize=11];
  edge [color="#64748b", fontname="Helvetica", fontsize=9];
"""
_STYLES = {
    "argument": ', shape=ellipse, fillcolor="#dcfce7"',
    "constant": ', shape=ellipse, fillcolor="#fef3c7"',
    "equation": "",
    "output": ', shape=ellipse, fillcolor="#fee2e2"',
}


def dot_text(graph: Graph) -> str:
    """Write a program's graph: types on the edges, programs inside equations as clusters beside their equation."""
    writer = _Writer()
    writer.graph(graph, "n", "  ")
    return f"digraph {_quoted(graph.name or 'program')} {{\n{_HEAD}" + "".join(writer.lines) + "}\n"


class _Writer:
    """The lines of the text. A node's name has the positions of the equations around it, and its own."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def graph(self, graph: Graph, prefix: str, pad: str) -> None:
        """Write the nodes and edges of a program."""
        for i, node in enumerate(graph.nodes):
            self.node(node, f"{prefix}{i}", pad)
        for source, target, value in graph.edges:
            self.lines.append(f"{pad}{prefix}{source} -> {prefix}{target} [label={_quoted(value)}];\n")

    def node(self, node: Node, name: str, pad: str) -> None:
        """Write a node, as a cluster if it has programs inside."""
        texts = [node.title, *node.details]
        if node.kind != "equation":
            texts += node.values
        label = _quoted("\n".join(texts))
        tooltip = f", tooltip={_quoted(node.note)}" if node.note else ""
        line = f"{name} [label={label}{_STYLES[node.kind]}{tooltip}];\n"
        if not node.programs:
            self.lines.append(pad + line)
            return
        self.lines.append(f'{pad}subgraph cluster_{name} {{\n{pad}  style="rounded"; color="#94a3b8";\n{pad}  {line}')
        for i, (parameter, inner) in enumerate(node.programs):
            self.cluster(parameter, inner, name, f"{name}_{i}_", pad + "  ")
        self.lines.append(f"{pad}}}\n")

    def cluster(self, parameter: str, inner: Graph, equation: str, prefix: str, pad: str) -> None:
        """Write a program inside an equation as a cluster."""
        label = f"{parameter}: {inner.name}" if inner.name else parameter
        self.lines.append(f"{pad}subgraph cluster_{prefix} {{\n{pad}  label={_quoted(label)}; style=dashed;\n")
        self.graph(inner, prefix, pad + "  ")
        self.lines.append(f"{pad}}}\n")
        if inner.nodes:
            self.lines.append(f"{pad}{equation} -> {prefix}0 [style=dashed, arrowhead=none, lhead=cluster_{prefix}];\n")


def _quoted(text: str) -> str:
    """Quote a string in Graphviz' language; line breaks stay, control characters are escaped."""
    lines = (shown(line).replace("\t", "\\t").replace("\\", "\\\\").replace('"', '\\"') for line in text.split("\n"))
    return '"' + "\\n".join(lines) + '"'
