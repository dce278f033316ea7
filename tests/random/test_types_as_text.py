"""Types of keys in texts: the plugin that makes them is loaded for the text, wherever it is read first."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
from corejax.ir import parse_jaxpr
from corejax.errors import JaxprSyntaxError
text = "{ lambda ; a:key<fry>[2]. let  in (a,) }"
assert str(parse_jaxpr(text)) == text
try:
    parse_jaxpr(text.replace("fry", "fly"))
except JaxprSyntaxError as error:
    print(str(error).partition(";")[0])
"""


def test_a_program_with_keys_is_read_before_anything_else() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "line 1, column 14: 'key<fly>' is not a dtype\n"), done.stderr


@pytest.mark.parametrize("arguments", [pytest.param("key<fry>[]", marks=pytest.mark.slow), "{'k': key<fry>[]}"])
def test_keys_as_arguments_of_the_command(arguments: str, tmp_path: Path) -> None:
    path = tmp_path / "drawing.py"
    path.write_text(
        "import corejax\n"
        "def draw(key):\n"
        "    return corejax.random.normal(key['k'] if isinstance(key, dict) else key, (3,))\n"
    )
    command = [sys.executable, "-m", "corejax", "jaxpr", f"{path}:draw", "--args", arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout.startswith("{ lambda ; a:key<fry>[]. let"), done.stderr
