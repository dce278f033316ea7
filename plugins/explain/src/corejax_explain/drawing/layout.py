"""Layered drawing of directed acyclic graphs (Sugiyama, Tagawa, Toda 1981), small and without dependencies.

1. Layers: each node is below all nodes that it uses; a node that uses none is directly above its first user.
2. Points: the line of a value that is used more than one layer below passes a point on each layer between. All uses of
   the value share these points. In a program with thousands of equations the longest lines have no points.
3. Orders on the layers, so that few lines cross: each item moves to the mean position of its neighbours, up and down.
4. Coordinates: each item moves to the mean of its neighbours as far as the room allows, in the least-squares sense.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right, insort
from collections.abc import Sequence
from typing import NamedTuple

Point = tuple[float, float]
Line = tuple[int, int, object]  # source node, target node, value of the source
Neighbours = list[list[int]]

_SWEEPS = 12
_BESIDE, _BELOW = 18.0, 30.0  # space between items of a layer, and between layers
_PASSING = 8.0  # width of a point that a line passes
_POINTS = 4000  # maximal number of points, so that the largest programs take seconds


class Layout(NamedTuple):
    """The coordinates of nodes and lines.

    Attributes:
        width, height: size of the whole drawing.
        corners: upper left corner of each node.
        lines: (line, points) for each stretch of a line: straight down between the points 0 and 1, a curve between 1
            and 2. Lines may share a stretch; `line` is one of them.
        ends: for each stretch in `lines`, whether it ends at a node.
    """

    width: float
    height: float
    corners: list[Point]
    lines: list[tuple[Line, list[Point]]]
    ends: list[bool]


def layout(sizes: Sequence[Point], lines: Sequence[Line]) -> Layout:
    """Place nodes and lines.

    Args:
        sizes: width and height of each node. Lines to a node must come from nodes with smaller numbers.
        lines: lines from node to node.
    """
    return _Layered(sizes, lines).placed() if sizes else Layout(0.0, 0.0, [], [], [])


def layers_of(count: int, lines: Sequence[Line]) -> list[int]:
    """Return the layer of each node."""
    layers = [0] * count
    users: Neighbours = [[] for _ in range(count)]
    uses = [False] * count
    for source, target, _ in sorted(lines, key=lambda line: line[1]):
        layers[target] = max(layers[target], layers[source] + 1)
        users[source].append(target)
        uses[target] = True
    for node in range(count):
        if not uses[node] and users[node]:
            layers[node] = min(layers[user] for user in users[node]) - 1
    return layers


class _Layered:
    """A graph on layers. Its items are the nodes, then the points that lines pass."""

    def __init__(self, sizes: Sequence[Point], lines: Sequence[Line]) -> None:
        self.nodes = len(sizes)
        self.sizes = list(sizes)
        self.layer = layers_of(len(sizes), lines)
        self.up: Neighbours = [[] for _ in sizes]
        self.down: Neighbours = [[] for _ in sizes]
        self.stretches: list[tuple[int, int, Line]] = []
        passed: dict[tuple[int, object], list[int]] = {}
        for line in sorted(lines, key=lambda line: self.layer[line[1]] - self.layer[line[0]]):
            if len(self.sizes) - self.nodes < _POINTS:
                self.add(line, passed.setdefault((line[0], line[2]), []))
            else:
                self.stretches.append((line[0], line[1], line))
        self.rows: list[list[int]] = [[] for _ in range(max(self.layer) + 1)]
        for item, layer in enumerate(self.layer):
            self.rows[layer].append(item)

    def add(self, line: Line, points: list[int]) -> None:
        """Add a line; `points` are the points of its value so far, to which missing ones are added."""
        source, target, _ = line
        first = self.layer[source] + 1
        while first + len(points) < self.layer[target]:
            point = len(self.sizes)
            self.sizes.append((_PASSING, 0.0))
            self.layer.append(first + len(points))
            self.up.append([])
            self.down.append([])
            self.join(points[-1] if points else source, point, line)
            points.append(point)
        before = self.layer[target] - first
        self.join(points[before - 1] if before else source, target, line)

    def join(self, upper: int, lower: int, line: Line) -> None:
        """Add a stretch of a line between items of adjacent layers."""
        self.stretches.append((upper, lower, line))
        self.down[upper].append(lower)
        self.up[lower].append(upper)

    # -- order ----------------------------------------------------------------------------------------------------

    def order(self) -> None:
        """Sort the rows so that few lines cross."""
        best, fewest = [list(row) for row in self.rows], self.crossings()
        for sweep in range(_SWEEPS):
            if fewest == 0:
                break
            rows, neighbours = (self.rows[::-1], self.down) if sweep % 2 else (self.rows, self.up)
            for above, row in itertools.pairwise(rows):
                place = {item: i / max(len(above) - 1, 1) for i, item in enumerate(above)}
                own = {item: i / max(len(row) - 1, 1) for i, item in enumerate(row)}
                means = {item: _mean([place[n] for n in neighbours[item]], own[item]) for item in row}
                row.sort(key=means.__getitem__)
            crossings = self.crossings()
            if crossings < fewest:
                best, fewest = [list(row) for row in self.rows], crossings
        self.rows = best

    def crossings(self) -> int:
        """Count the crossings of lines."""
        total = 0
        for upper, lower in itertools.pairwise(self.rows):
            place = {item: i for i, item in enumerate(lower)}
            seen: list[int] = []
            for item in upper:
                ends = sorted(place[n] for n in self.down[item])
                total += sum(len(seen) - bisect_right(seen, end) for end in ends)
                for end in ends:
                    insort(seen, end)
        return total

    # -- coordinates ----------------------------------------------------------------------------------------------

    def centres(self) -> list[float]:
        """Return the horizontal centre of each item."""
        x = [0.0] * len(self.sizes)
        for row in self.rows:
            self.spread(row, [0.0] * len(row), x)
        for sweep in range(2 * _SWEEPS):
            upward = sweep % 2 == 1
            neighbours = self.down if upward else self.up
            for row in reversed(self.rows) if upward else self.rows:
                self.spread(row, [_mean([x[n] for n in neighbours[item]], x[item]) for item in row], x)
        return x

    def spread(self, row: Sequence[int], wanted: Sequence[float], x: list[float]) -> None:
        """Place a row's items as near to `wanted` as their widths allow, by isotonic regression."""
        offsets = [0.0]
        for left, right in itertools.pairwise(row):
            offsets.append(offsets[-1] + (self.sizes[left][0] + self.sizes[right][0]) / 2 + _BESIDE)
        blocks: list[tuple[float, int]] = []  # mean of a run of items, their number
        for want, offset in zip(wanted, offsets, strict=True):
            mean, count = want - offset, 1
            while blocks and blocks[-1][0] > mean:
                other, others = blocks.pop()
                mean, count = (mean * count + other * others) / (count + others), count + others
            blocks.append((mean, count))
        means = [mean for mean, count in blocks for _ in range(count)]
        for item, mean, offset in zip(row, means, offsets, strict=True):
            x[item] = mean + offset

    def placed(self) -> Layout:
        """Return the layout."""
        self.order()
        x = self.centres()
        left = min(c - w / 2 for c, (w, _) in zip(x, self.sizes, strict=True))
        x = [c - left for c in x]
        heights = [max(self.sizes[item][1] for item in row) for row in self.rows]
        tops = [0.0, *itertools.accumulate(height + _BELOW for height in heights)]
        width = max(c + w / 2 for c, (w, _) in zip(x, self.sizes, strict=True))
        corners = [(c - w / 2, tops[layer]) for c, (w, _), layer in zip(x, self.sizes, self.layer, strict=True)]
        lines, ends = [], []
        for upper, lower, line in self.stretches:
            layer = self.layer[upper]
            start = self.port(x, upper, lower, self.down)
            bottom = tops[layer] + self.sizes[upper][1]
            end = self.port(x, lower, upper, self.up)
            points = [(start, bottom), (start, tops[layer] + heights[layer]), (end, tops[self.layer[lower]])]
            lines.append((line, points))
            ends.append(lower < self.nodes)
        return Layout(width, tops[-1] - _BELOW, corners[: self.nodes], lines, ends)

    def port(self, x: Sequence[float], item: int, other: int, neighbours: Neighbours) -> float:
        """Return where a line touches an item; the incoming lines are distributed over its middle."""
        others = sorted(set(neighbours[item]), key=lambda n: x[n])
        room = min(0.5 * self.sizes[item][0], 12.0 * (len(others) - 1))
        if neighbours is self.down or len(others) < 2 or other not in others:
            return x[item]
        return x[item] + room * (others.index(other) / (len(others) - 1) - 0.5)


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
