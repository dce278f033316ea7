"""The boxes of a program's picture: the size of each with its text and the programs inside."""

from __future__ import annotations

from typing import Any, NamedTuple

from corejax_explain.drawing.graph import Graph
from corejax_explain.drawing.layout import Layout, layout

CHARACTER, LINE = 6.7, 14.0  # width and height of a character of the 11 pixel monospaced font
PAD = 7.0
_INNER = 12.0  # space around a program inside an equation
_LONGEST = 48  # maximal characters of a line


class Inner(NamedTuple):
    """A program inside an equation: the upper left corner in the equation's box, and the picture."""

    x: float
    y: float
    picture: Picture


class Box(NamedTuple):
    """A node with its texts.

    Attributes:
        kind, note: those of the node.
        lines: lines of text.
        width, height: size of the box.
        programs: programs inside the box.
    """

    kind: str
    note: str
    lines: list[str]
    width: float
    height: float
    programs: list[Inner]


class Picture(NamedTuple):
    """A program's label, its boxes, and their layout."""

    label: str
    boxes: list[Box]
    layout: Layout


def picture(graph: Graph, label: str = "") -> Picture:
    """Place the boxes of a program."""
    boxes = [_box(node) for node in graph.nodes]
    return Picture(label, boxes, layout([(box.width, box.height) for box in boxes], graph.edges))


def _box(node: Any) -> Box:
    texts = [node.title, *node.details]
    if node.kind != "output" or node.values:
        texts.append("  ".join(node.values))
    lines = [text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…" for text in texts if text]
    width = max(map(len, lines)) * CHARACTER + 2 * PAD
    height = len(lines) * LINE + 2 * PAD - 4
    programs: list[Inner] = []
    if node.programs:
        x, tallest = _INNER, 0.0
        for name, inner in node.programs:
            made = picture(inner, f"{name}: {inner.name}" if inner.name else name)
            programs.append(Inner(x, height + LINE, made))
            x += outer_width(made) + _INNER
            tallest = max(tallest, outer_height(made))
        width, height = max(width, x), height + LINE + tallest + _INNER
    return Box(node.kind, node.note, lines, width, height, programs)


def outer_width(made: Picture) -> float:
    """Return the width of a program's frame."""
    return max(made.layout.width, len(made.label) * CHARACTER) + 2 * PAD


def outer_height(made: Picture) -> float:
    """Return the height of a program's frame."""
    return made.layout.height + 2 * PAD
