"""Each program under examples/ runs from its command line, draws its picture, and is shown on a page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from .programs import EXAMPLES, NAMES, load

pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")

PAGE = EXAMPLES.parent / "docs" / "examples.md"
SMALL = {
    "batch_norm": (["--steps", "1", "--batch", "64"], "of 359 test images right after 1 epochs"),
    "gaussian_process": (["--starts", "1", "--steps", "3"], "inside the band of 95 %"),
    "hierarchical_model": (["--chains", "2", "--steps", "30"], "greatest R-hat"),
    "neural_ode": (["--steps", "1", "--paths", "2"], "from a new start"),
    "sharded_transformer": (["--steps", "1", "--devices", "1"], "bits per character after 1 steps on 1 x 1 devices"),
    "principal_components": (["--count", "9"], "nearest to their own digit's 9 components"),
    "transformer": (["--steps", "2", "--batch", "2", "--length", "16"], "bits per character after 2 steps"),
}


LONG_TO_COMPILE = {"batch_norm", "hierarchical_model", "neural_ode", "sharded_transformer", "transformer"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in LONG_TO_COMPILE else name for name in NAMES]
)
def test_it_runs_and_draws(name: str, tmp_path: Path) -> None:
    options, summary = SMALL[name]
    picture = tmp_path / "picture.png"
    done = CliRunner().invoke(load(name).main, [*options, "--seed", "1", "--output", str(picture)])
    assert done.exception is None, done.output
    assert summary in " ".join(done.output.split())
    assert picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size > 10_000


def test_what_the_page_quotes_is_in_the_programs() -> None:
    def without_layout(text: str) -> str:
        return re.sub(r"\s|,(?=\s*[)\]}])", "", text)  # the page has shorter lines than the programs

    quoted = re.findall(r"^```py\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    programs = "".join(without_layout((EXAMPLES / f"{name}.py").read_text()) for name in NAMES)
    assert len(quoted) == len(NAMES)
    assert not [text for text in quoted if without_layout(text).rstrip(",") not in programs]


@pytest.mark.parametrize("name", NAMES)
def test_it_is_shown(name: str) -> None:
    page = PAGE.read_text()
    assert f"python examples/{name}.py" in page and f"](images/{name}.png)" in page
    picture = EXAMPLES.parent / "docs" / "images" / f"{name}.png"
    assert 5_000 < picture.stat().st_size < 60_000
