"""Pictures of programs as SVG, for files and notebooks."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from html import escape
from typing import Any

from corejax.extend import ClosedJaxpr, Jaxpr
from corejax.extend.messages import shown
from corejax.extend.programs import subjaxprs
from corejax_explain.drawing.boxes import LINE, PAD, Box, Picture, outer_height, outer_width, picture
from corejax_explain.drawing.dot import dot_text
from corejax_explain.drawing.graph import Graph, program_graph

_MARGIN = 10.0
_LARGEST = 200  # maximal number of equations for which a notebook shows the picture
_COLOURS = {"argument": "#dcfce7", "constant": "#fef3c7", "equation": "#eef2ff", "output": "#fee2e2"}
_HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" \
viewBox="0 0 {width:.0f} {height:.0f}" font-family="Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="11">
<title>{title}</title>
<defs><marker id="corejax-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">\
<path d="M0 0.5L8 4L0 7.5z" fill="#64748b"/></marker></defs>
<rect width="100%" height="100%" fill="white"/>
"""


class Drawing:
    """A picture of a program.

    Attributes:
        program: the program.
    """

    def __init__(self, program: ClosedJaxpr | Jaxpr) -> None:
        self.program = program

    @functools.cached_property
    def graph(self) -> Graph:
        """The program's nodes and edges."""
        return program_graph(self.program)

    @property
    def dot(self) -> str:
        """The graph in Graphviz' language."""
        return dot_text(self.graph)

    @property
    def svg(self) -> str:
        """The picture as an SVG document. Equations are below their operands, and have inner programs in their box.

        Tooltips show the program's text and the user's line.
        """
        made = picture(self.graph)
        width, height = made.layout.width + 2 * _MARGIN, made.layout.height + 2 * _MARGIN
        title = escape(shown(self.graph.name or "program"))
        head = _HEAD.format(width=width, height=height, title=title)
        return head + "".join(_program(made, _MARGIN, _MARGIN)) + "</svg>\n"

    def save(self, path: Any) -> None:
        """Write the picture to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg)

    def _repr_html_(self) -> str | None:
        """Return the picture and the folded text; None if the program has too many equations for a picture."""
        return None if count_equations(self.program, _LARGEST) > _LARGEST else self.html()

    def html(self) -> str:
        """Return HTML with the picture, and below it the folded text of the program."""
        text = escape(shown(self.program.pretty(source_info=True)))
        summary = f"{count_equations(self.program)} equations as text"
        return (
            f'<div style="max-height: 80vh; overflow: auto">{self.svg}</div>\n'
            f"<details><summary>{summary}</summary><pre>{text}</pre></details>\n"
        )

    def __repr__(self) -> str:
        return f"<Drawing of {self.graph.name or 'a program'}: {count_equations(self.program)} equations>"


def draw_jaxpr(program: ClosedJaxpr | Jaxpr) -> Drawing:
    """Draw a program. Notebooks show the result; files get it by `.svg` or `.save("picture.svg")`.

    Raises:
        TypeError: `program` is not a jaxpr.
    """
    if not isinstance(program, ClosedJaxpr | Jaxpr):
        raise TypeError(
            f"draw_jaxpr takes a program, such as make_jaxpr(f)(*args), got {program!r} of type "
            f"{type(program).__name__}"
        )
    return Drawing(program)


def count_equations(program: ClosedJaxpr | Jaxpr, limit: float = math.inf) -> int:
    """Count the equations of a program and of the programs inside; stop when the count exceeds `limit`."""
    count = len(program.eqns)
    for eqn in program.eqns:
        for inner in subjaxprs(eqn.params):
            if count > limit:
                return count
            count += count_equations(inner, limit - count)
    return count


def _program(made: Picture, x: float, y: float) -> Iterator[str]:
    for (line, points), arrives in zip(made.layout.lines, made.layout.ends, strict=True):
        yield _line(line[2], points, arrives, x, y)
    for box, (left, top) in zip(made.boxes, made.layout.corners, strict=True):
        yield from _box(box, x + left, y + top)


def _line(value: object, points: list[tuple[float, float]], arrives: bool, x: float, y: float) -> str:
    (x0, y0), (x1, y1), (x2, y2) = ((x + px, y + py) for px, py in points)
    middle = (y1 + y2) / 2
    arrow = ' marker-end="url(#corejax-arrow)"' if arrives else ""
    path = f"M{x0:.1f} {y0:.1f}V{y1:.1f}C{x1:.1f} {middle:.1f} {x2:.1f} {middle:.1f} {x2:.1f} {y2:.1f}"
    title = escape(shown(value))
    return f'<path d="{path}" fill="none" stroke="#94a3b8"{arrow}><title>{title}</title></path>\n'


def _box(box: Box, x: float, y: float) -> Iterator[str]:
    round_by = 4 if box.kind == "equation" else 12
    fill = "#f8fafc" if box.programs else _COLOURS[box.kind]
    note = f"<title>{escape(shown(box.note))}</title>" if box.note else ""
    yield (
        f'<g>{note}<rect x="{x:.1f}" y="{y:.1f}" width="{box.width:.1f}" '
        f'height="{box.height:.1f}" rx="{round_by}" fill="{fill}" stroke="#94a3b8"/>\n'
    )
    for i, text in enumerate(box.lines):
        weight = ' font-weight="bold"' if i == 0 and box.kind != "output" else ' fill="#475569"'
        yield _text(text, x + box.width / 2, y + PAD + LINE * (i + 0.65), f' text-anchor="middle"{weight}')
    yield "</g>\n"
    for left, top, inner in box.programs:
        yield from _frame(inner, x + left, y + top)


def _frame(made: Picture, x: float, y: float) -> Iterator[str]:
    """Draw a program inside an equation, with its label above."""
    width, height = outer_width(made), outer_height(made)
    yield _text(made.label, x, y - 3, ' fill="#475569"')
    yield (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="4" fill="white" '
        f'stroke="#cbd5e1" stroke-dasharray="4 3"/>\n'
    )
    yield from _program(made, x + (width - made.layout.width) / 2, y + PAD)


def _text(text: str, x: float, y: float, attributes: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" xml:space="preserve"{attributes}>{escape(shown(text))}</text>\n'
