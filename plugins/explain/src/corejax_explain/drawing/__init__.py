"""Pictures of programs without Graphviz.

`graph` converts a program to nodes and edges; `dot` writes these in Graphviz' language.
`layout` places the nodes of a graph on layers, and the lines between them. `boxes` applies it to a program and the
programs inside its equations; `svg` writes the picture.
"""

from __future__ import annotations

from corejax_explain.drawing.graph import program_graph as program_graph
from corejax_explain.drawing.svg import Drawing as Drawing
from corejax_explain.drawing.svg import draw_jaxpr as draw_jaxpr
