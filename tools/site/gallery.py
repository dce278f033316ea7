"""Run the page of the example plugins, and draw its pictures again.

    python -m tools.site.gallery            runs docs/gallery.md, and says where it prints something else
    python -m tools.site.gallery --write    writes what the page prints, and the pictures

The example plugins are installed into a temporary folder, so that the environment stays as it is.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "gallery.md"
IMAGES = ROOT / "docs" / "images"
BLOCK = re.compile(r"^```(py|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PICTURE = re.compile(r"\]\(images/gallery-(\w+)\.png\)")
Names = dict[str, Any]


def run_page(text: str, pictures: pathlib.Path | None) -> str:
    """Return the page with what its code prints, and draw each section's picture from the section's names."""
    names: Names = {}
    sections = text.split("\n## ")
    for number, section in enumerate(sections):
        printed = ""

        def run(found: re.Match[str]) -> str:
            nonlocal printed
            if found[1] == "text":
                return f"```text\n{printed}```"
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(found[2], str(PAGE), "exec"), names)
            printed = out.getvalue()
            return found[0]

        sections[number] = BLOCK.sub(run, section)
        for name in PICTURE.findall(section) if pictures else []:
            draw(name, names, pictures)
    return "\n## ".join(sections)


def draw(name: str, names: Names, folder: pathlib.Path) -> None:
    """Draw one picture, and reduce its colours to make the file small."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from tools.site.pictures import few_colours

    figure, axes = plt.subplots(1, 2 if name in WIDE else 1, figsize=(6.8, 2.9), layout="constrained", squeeze=False)
    DRAWINGS[name](axes[0], names)
    for ax in axes[0]:
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False, fontsize=8)
    path = folder / f"gallery-{name}.png"
    figure.savefig(path, dpi=130)
    plt.close(figure)
    few_colours(path, 64)


def special_functions(axes: Any, names: Names) -> None:
    """Lambert's W with two derivatives; erfcx, whose factors overflow and underflow."""
    from scipy.special import erfc

    import corejax.numpy as jnp

    x = names["x"]
    axes[0].plot(x, names["lambertw"](x), label="W")
    axes[0].plot(x, names["slope"](x), label="W'")
    axes[0].plot(x, names["curvature"](x), label="W''")
    axes[0].set(ylim=(-2, 2.5), xlabel="x")
    wide = jnp.linspace(0.0, 12.0, 200)
    axes[1].semilogy(wide, names["erfcx"](wide), label="erfcx(x) = exp(x²) erfc(x)")
    axes[1].semilogy(wide, erfc(wide.__array__()), label="erfc(x)")
    axes[1].set(ylim=(1e-40, 1e3), xlabel="x")


def toeplitz(axes: Any, names: Names) -> None:
    """Show the signal, blurred and recovered."""
    axes[0].fill_between(names["t"], names["signal"], color="0.85", label="signal")
    axes[0].plot(names["t"], names["blurred"], label="blurred")
    axes[0].plot(names["t"], names["recovered"], label="recovered")


def linear_recurrence(axes: Any, names: Names) -> None:
    """Show the series with the averages before and after."""
    axes[0].plot(names["series"], ".", color="0.7", markersize=3, label="series")
    for decay in (names["decays"][0], names["decays"][-1]):
        axes[0].plot(names["average"](decay), label=f"average, decay {decay:.2f}")
    axes[0].set(xlabel="time")


def fixed_point(axes: Any, names: Names) -> None:
    """Show the solution with its tangents."""
    axes[0].plot(names["p"], names["x"], label="x = p cos(x)")
    for point, value, slope in zip(names["points"], names["values"], names["slopes"], strict=True):
        ends = [float(point) - 0.15, float(point) + 0.15]
        label = "tangents" if point == names["points"][0] else None
        line = [float(value + slope * (end - point)) for end in ends]
        axes[0].plot(ends, line, color="tab:orange", linewidth=2.5, label=label)
        axes[0].plot(point, value, "o", color="tab:orange")
    axes[0].set(xlabel="p", ylabel="x")


def interval_bounds(axes: Any, names: Names) -> None:
    """Show the function inside its bounds, in large and in small boxes."""
    import numpy as np

    x = np.linspace(-2, 2, 400, dtype=np.float32)
    for ax, (edges, found) in zip(axes, (names["coarse"], names["fine"]), strict=True):
        lower, upper = (np.append(side, side[-1]) for side in (found.lower, found.upper))
        ax.fill_between(edges, lower, upper, step="post", alpha=0.35, label=f"bounds, {len(edges) - 1} boxes")
        ax.plot(x, names["wave"](x), color="black", linewidth=1, label="sin(3x) + 0.3 x²")
        ax.set(xlabel="x", ylim=(-2.2, 3.6))


DRAWINGS: dict[str, Callable[[Any, Names], None]] = {
    function.__name__: function
    for function in (special_functions, toeplitz, linear_recurrence, fixed_point, interval_bounds)
}
WIDE = {"special_functions", "interval_bounds"}


def install(folder: pathlib.Path) -> None:
    """Install the example plugins into a folder."""
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--target", folder]
    plugins = sorted(path.parent for path in ROOT.glob("examples/plugins/*/pyproject.toml"))
    subprocess.run([sys.executable, "-m", "pip", "install", *options, *plugins], check=True)


def main() -> int:
    """Run the page in a process that has the example plugins; return 1 if it prints something else."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", action="store_true", help="write what the page prints, and the pictures")
    parser.add_argument("--installed", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if not arguments.installed:
        with tempfile.TemporaryDirectory() as folder:
            install(pathlib.Path(folder))
            path = os.pathsep.join([folder, str(ROOT), os.environ.get("PYTHONPATH", "")])
            command = [sys.executable, "-m", "tools.site.gallery", "--installed", *sys.argv[1:]]
            return subprocess.run(command, env={**os.environ, "PYTHONPATH": path}).returncode
    text = PAGE.read_text(encoding="utf-8")
    new = run_page(text, IMAGES if arguments.write else None)
    if arguments.write:
        PAGE.write_text(new, encoding="utf-8")
    elif new != text:
        print(new)
    return int(new != text and not arguments.write)


if __name__ == "__main__":
    sys.exit(main())
