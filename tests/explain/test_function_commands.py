"""What commands that look at functions share: functions by name, arguments as types, failures in a sentence."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner, Result

from corejax.errors import JaxprSyntaxError
from corejax.extend.types import ShapeDtypeStruct
from corejax_explain._typed_arguments import read_arguments
from corejax_explain.commands import FunctionCall, find_function, takes_function

F32 = np.float32

MODULE = """
def f(x, n=1):
    return x

class Box:
    @staticmethod
    def g(x):
        return x

number = 3
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory with a module, which a command is started in; modules imported from it are forgotten."""
    (tmp_path / "looked_at.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    path, modules = list(sys.path), set(sys.modules)
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


# -- arguments -----------------------------------------------------------------------------------------------------


def spec(*shape: int, dtype: Any = F32, weak: bool = False) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(shape, dtype, weak)


@pytest.mark.parametrize(
    ("texts", "args", "kwargs"),
    [
        ([], [], {}),
        ([""], [], {}),
        (["f32[3,4]", "i32[]"], [spec(3, 4), spec(dtype=np.int32)], {}),
        (["f32[3, 4], int32[],"], [spec(3, 4), spec(dtype=np.int32)], {}),
        (["~f32[]"], [spec(weak=True)], {}),
        (['{"w": f32[3,3], "b": [f32[3], None], 2: ()}'], [{"w": spec(3, 3), "b": [spec(3), None], 2: ()}], {}),
        (["(f32[1], f32[2]), (f32[3],), (f32[4])"], [(spec(1), spec(2)), (spec(3),), spec(4)], {}),
        (["-1, 2.5, 'a,b', True, None, (1+2j)"], [-1, 2.5, "a,b", True, None, 1 + 2j], {}),
        (["f32[2], x=f32[0], n=3", "y='='"], [spec(2)], {"x": spec(0), "n": 3, "y": "="}),
    ],
)
def test_arguments(texts: list[str], args: list[Any], kwargs: dict[str, Any]) -> None:
    assert read_arguments(texts) == (args, kwargs)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f32", r"column 1: the type of a scalar is written `f32\[\]`"),
        ("f32[3", "column 1: expected a type such as"),
        ("f33[3]", "column 1: 'f33' is not a dtype"),
        ("f32[3] f32[4]", "column 8: expected `,` or the end of the arguments"),
        ("(f32[3]", "expected `\\)` or `,`, got the end"),
        ('{"w" f32[3]}', "expected `:` after the key 'w'"),
        ("{f32[3]: 1}", "column 2: a key is a string"),
        ("x=1, f32[3]", "column 6: a positional argument after x="),
        ("x=1, x=2", "argument 'x' is given twice"),
        (", f32[3]", "column 1: expected"),
        ("relu", "'relu' is not a value: strings have quotes"),
        ("<f>", "expected a type"),
    ],
)
def test_what_is_no_argument(text: str, message: str) -> None:
    with pytest.raises(JaxprSyntaxError, match=message):
        read_arguments([text])


# -- functions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["looked_at:f", "looked_at.py:f", "looked_at:Box.g", "./looked_at.py:Box.g"])
def test_functions_by_name(name: str, here: Path) -> None:
    assert find_function(name)(7) == 7


def test_a_file_in_another_directory_finds_its_neighbours(here: Path) -> None:
    (here / "more").mkdir()
    (here / "more" / "neighbour.py").write_text("value = 5\n")
    (here / "more" / "looked_at.py").write_text("import neighbour\ndef f(): return neighbour.value\n")
    assert find_function("more/looked_at.py:f")() == 5


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("looked_at", "named package.module:function or path/to/file.py:function, got 'looked_at'"),
        (":f", "named package.module"),
        ("nowhere:f", "there is no module 'nowhere'"),
        ("looked_at.inner:f", "there is no module 'looked_at.inner'"),
        ("nowhere.py:f", "there is no file 'nowhere.py'"),
        ("looked_at:Bx.g", "looked_at has no 'Bx.g'; did you mean 'Box'"),
        ("looked_at:number", "looked_at:number is not a function: number is of type int"),
    ],
)
def test_no_function_of_that_name(name: str, message: str, here: Path) -> None:
    with pytest.raises(click.UsageError) as caught:
        find_function(name)
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import not_there_at_all\n", "ModuleNotFoundError: No module named 'not_there_at_all'"),
        ("x = 1\nraise SystemExit(3)\n", "broken.py:2 (<module>): SystemExit: 3"),
        ("1 / 0\n", "broken.py:1 (<module>): ZeroDivisionError: division by zero"),
        ("def f(:\n", "SyntaxError"),
    ],
)
@pytest.mark.parametrize("name", ["broken:f", "broken.py:f"])
def test_modules_that_fail_say_where(name: str, text: str, message: str, here: Path) -> None:
    (here / "broken.py").write_text(text)
    with pytest.raises(click.ClickException) as caught:
        find_function(name)
    assert message in caught.value.message and not isinstance(caught.value, click.UsageError)
    assert "broken" not in sys.modules


# -- the command line ----------------------------------------------------------------------------------------------

Run = Callable[..., Result]


@pytest.fixture
def seen(here: Path) -> tuple[Run, list[Any]]:
    """A command, and what its callback was given."""
    calls: list[Any] = []

    @takes_function("look")
    @click.option("--flag", is_flag=True)
    @click.option("-n", "--number", type=int)
    def look(call: FunctionCall, **options: Any) -> None:
        calls.append((call, options))

    return lambda *arguments: CliRunner().invoke(look, arguments), calls


@pytest.mark.parametrize(
    "arguments",
    [
        ["looked_at:f", "--args", "f32[3]", "-1", "--flag", "-n", "2"],
        ["--flag", "-n", "2", "looked_at:f", "--args", "f32[3]", "-1"],
        ["looked_at:f", "--flag", "--args=f32[3], -1", "-n", "2"],
        ["looked_at:f", "f32[3], -1", "--flag", "--number", "2"],
        ["looked_at:f", "--flag", "f32[3]", "-n", "2", "--args", "-1"],
        ["-n", "2", "--flag", "looked_at:f", "--args", "f32[3]", "--", "-1"],
    ],
)
def test_types_follow_args_and_options_stay_options(arguments: list[str], seen: tuple[Run, list[Any]]) -> None:
    run, calls = seen
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    ((call, options),) = calls
    assert (call.args, options) == ((spec(3), -1), {"flag": True, "number": 2})
    assert call.static_argnums == (1,)


def test_negative_values_need_no_care(seen: tuple[Run, list[Any]]) -> None:
    run, calls = seen
    assert run("looked_at:f", "--args", "-inf", "-2").exit_code == 0
    assert calls[0][0].args == (-np.inf, -2)


def test_static_keywords_are_bound_and_the_rest_is_traced(seen: tuple[Run, list[Any]]) -> None:
    run, calls = seen
    assert run("looked_at:f", "--args", "x=f32[2], n=4").exit_code == 0
    call = calls[0][0]
    assert call.kwargs == {"x": spec(2)} and call.fun.keywords == {"n": 4}
    assert str(call.jaxpr()) == "{ lambda ; a:f32[2]. let  in (a,) }"


def test_mistakes_are_usage_errors(seen: tuple[Run, list[Any]]) -> None:
    run, calls = seen
    for arguments in (["looked_at:g"], ["looked_at:f", "--args", "f32[3"], [], ["looked_at:f", "--transform", "sqrt"]):
        assert run(*arguments).exit_code == 2
    assert not calls


def test_what_fails_is_said_with_the_users_line(here: Path) -> None:
    def fails(x: Any) -> Any:
        raise ValueError("not this way")

    call = FunctionCall("m:fails", fails, [spec(2)], {}, [])
    with pytest.raises(click.ClickException) as caught:
        call.run(call.jaxpr)
    message = caught.value.message
    assert message.startswith("m:fails failed while it was traced at ") and "test_function_commands.py" in message
    assert message.endswith("(fails): ValueError: not this way")


def test_what_users_code_prints_is_not_the_commands_output(here: Path, seen: tuple[Run, list[Any]]) -> None:
    (here / "talks.py").write_text("print('imported')\ndef f(x):\n    print('traced')\n    raise SystemExit(3)\n")
    run, calls = seen
    result = run("talks:f", "f32[]")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "imported\n")
    with pytest.raises(click.ClickException, match="SystemExit: 3"):
        calls[0][0].run(calls[0][0].jaxpr)


def test_interrupts_pass(here: Path) -> None:
    def interrupted(x: Any) -> Any:
        raise KeyboardInterrupt

    call = FunctionCall("m:f", interrupted, [spec(2)], {}, [])
    with pytest.raises(KeyboardInterrupt):
        call.run(call.jaxpr)
