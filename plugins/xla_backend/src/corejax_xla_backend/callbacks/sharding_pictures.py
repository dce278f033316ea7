"""Pictures of shardings, on the terminal and as SVG."""

from __future__ import annotations

import colorsys
import functools
import html
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from corejax.extend import get_aval
from corejax_xla_backend.callbacks.inspect_sharding import inspect_array_sharding


class _Cells(NamedTuple):
    """The tiles of an array, row by row, with the devices of each."""

    rows: int
    columns: int
    devices: list[list[Any]]

    def label(self, i: int) -> str:
        """Return the label of a tile, such as `CPU 0,1`; with more than eight devices only the first and the last."""
        held = sorted(self.devices[i], key=lambda d: int(d.id))
        ids = [str(d.id) for d in held]
        listed = ",".join(ids) if len(ids) <= 8 else f"{ids[0]}…{ids[-1]}"
        return f"{held[0].platform.upper()} {listed}"


def _cells(shape: Sequence[int], sharding: Any) -> _Cells:
    if len(shape) not in (1, 2):
        raise ValueError(
            f"debug.visualize_sharding draws arrays of one or two dimensions, got the shape {tuple(shape)}"
        )
    tiles = sharding.tiles(len(shape))
    rows, columns = (1, tiles.shape[0]) if len(shape) == 1 else tiles.shape[:2]
    held = tiles.reshape(rows * columns, -1)
    return _Cells(rows, columns, [[sharding.device_tuple[i] for i in cell] for cell in held.tolist()])


def _default_color(hue: float) -> tuple[float, float, float]:
    return colorsys.hsv_to_rgb(hue, 0.35, 0.95)


def _rgb(i: int, count: int, color_map: Callable[[float], Sequence[float]] | None) -> tuple[int, int, int]:
    red, green, blue = (color_map or _default_color)(i / count)[:3]
    return round(255 * red), round(255 * green), round(255 * blue)


def visualize_array_sharding(arr: Any, **kwargs: Any) -> None:
    """Print a picture of the sharding of an array of one or two dimensions.

    In a compiled function that runs on several devices, the picture is printed when the function is compiled.

    Args:
        arr: an array of one or two dimensions.
        kwargs: options of `visualize_sharding`.
    """
    shown = functools.partial(visualize_sharding, get_aval(arr).shape, **kwargs)
    inspect_array_sharding(arr, callback=shown)


def visualize_sharding(
    shape: Sequence[int],
    sharding: Any,
    *,
    use_color: bool = True,
    scale: float = 1.0,
    min_width: int = 9,
    max_width: int = 80,
    color_map: Callable[[float], Sequence[float]] | None = None,
) -> None:
    """Print a picture of a sharding: a box for each part, labelled with its devices.

    Args:
        shape: shape of the array, of one or two dimensions.
        sharding: sharding of the array.
        use_color: whether boxes are coloured if the output is a terminal.
        scale: height of the picture in units of ten lines.
        min_width: least width of a box, in characters.
        max_width: greatest width of the picture, in characters, unless the labels need more.
        color_map: function from a number in [0, 1] to a colour, three numbers in [0, 1].

    Raises:
        ValueError: the shape does not have one or two dimensions.
    """
    cells = _cells(shape, sharding)
    base = int(10 * scale)
    height = max(base // cells.rows - 1, 1) if len(shape) == 2 else 1
    ratio = (shape[1] if len(shape) == 2 else 1) / max(shape[0], 1)
    total = min(max(int(base * ratio * 2.5), min_width * cells.columns), max_width)
    longest = max(len(cells.label(i)) for i in range(len(cells.devices)))
    width = max((total - 1) // cells.columns - 1, longest)
    colored = use_color and sys.stdout.isatty()

    def line(row: int, number: int) -> str:
        parts = []
        for i in range(row * cells.columns, (row + 1) * cells.columns):
            text = f"{cells.label(i) if number == height // 2 else '':^{width}}"
            if colored:
                red, green, blue = _rgb(i, len(cells.devices), color_map)
                text = f"\x1b[30;48;2;{red};{green};{blue}m{text}\x1b[0m"
            parts.append(text)
        return f"│{'│'.join(parts)}│"

    def rule(left: str, middle: str, right: str) -> str:
        return left + middle.join(["─" * width] * cells.columns) + right

    lines = [rule("┌", "┬", "┐")]
    for row in range(cells.rows):
        lines += [line(row, number) for number in range(height)]
        lines.append(rule("├", "┼", "┤") if row + 1 < cells.rows else rule("└", "┴", "┘"))
    sys.stdout.write("\n".join([*lines, ""]))


class ShardingPicture:
    """A picture of a sharding, which notebooks display.

    Attributes:
        svg: the picture as SVG text.
    """

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def _repr_svg_(self) -> str:
        return self.svg


def draw_array_sharding(
    arr: Any, *, width: int = 320, color_map: Callable[[float], Sequence[float]] | None = None
) -> ShardingPicture:
    """Return a picture of the sharding of an array of one or two dimensions, for notebooks.

    Args:
        arr: an array, or a `ShapeDtypeStruct` with a sharding.
        width: width of the picture in pixels.
        color_map: function from a number in [0, 1] to a colour, three numbers in [0, 1].

    Raises:
        ValueError: the array does not have one or two dimensions.
    """
    shape, cells = tuple(arr.shape), _cells(arr.shape, arr.sharding)
    ratio = (shape[0] / max(shape[1], 1)) if len(shape) == 2 else 0.1
    height = round(min(max(width * ratio, 24 * cells.rows), 3 * width))
    w, h = width / cells.columns, height / cells.rows
    drawn = []
    for i in range(len(cells.devices)):
        x, y = (i % cells.columns) * w, (i // cells.columns) * h
        color, label = "rgb({}, {}, {})".format(*_rgb(i, len(cells.devices), color_map)), html.escape(cells.label(i))
        size = min(13.0, 1.6 * w / max(len(label), 1))
        drawn.append(
            f'<g><title>{label}</title><rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" fill="{color}" '
            f'stroke="white"/><text x="{x + w / 2:.1f}" y="{y + h / 2:.1f}" font-size="{size:.1f}" '
            f'text-anchor="middle" dominant-baseline="central" font-family="sans-serif">{label}</text></g>'
        )
    return ShardingPicture(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
        f"{''.join(drawn)}</svg>"
    )
