"""Pictures of programs without Graphviz.

`graph` has a program as nodes and edges; `dot` writes these in Graphviz' language.
`layout` puts the nodes of a graph on layers and says where they and the lines between them are; `boxes` does so for a
program and those inside its equations; `svg` writes the picture.
"""

from __future__ import annotations

from corejax_explain.drawing.graph import program_graph as program_graph
from corejax_explain.drawing.svg import Drawing as Drawing
from corejax_explain.drawing.svg import draw_jaxpr as draw_jaxpr
