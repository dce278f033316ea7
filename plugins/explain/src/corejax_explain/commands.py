"""Commands that look at a function: `takes_function` makes them, `FunctionCall` is what their callbacks get.

The function is found by name, and its arguments are given as types.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

import click

import corejax
from corejax.extend import tree
from corejax.extend.messages import did_you_mean, error_text, raised_at
from corejax.extend.types import ShapeDtypeStruct
from corejax_explain._typed_arguments import read_arguments

R = TypeVar("R")

_TRANSFORMS = ("grad", "value_and_grad", "vmap")
_OPTION = re.compile(r"--?(?!inf\b|nan\b)[A-Za-z]")


class FunctionCall:
    """A function and arguments for it, as a command was given them.

    Attributes:
        name: the function as it was named.
        fun: the function, transformed as was asked, with its static keyword arguments.
        args, kwargs: `ShapeDtypeStruct`s in pytrees; values where nothing in an argument is a type.
        static_argnums: positions of such values.
        untouched: the function as it was found, and all keyword arguments, where no transformation was asked for.
    """

    def __init__(self, name: str, fun: Any, args: Sequence[Any], kwargs: dict[str, Any], transforms: Sequence[str]):
        self.name = name
        self.args = tuple(args)
        self.static_argnums = tuple(i for i, arg in enumerate(args) if _is_static(arg))
        static = {key: value for key, value in kwargs.items() if _is_static(value)}
        self.kwargs = {key: value for key, value in kwargs.items() if key not in static}
        self.untouched = None if transforms else (fun, kwargs)
        self.fun = functools.partial(fun, **static) if static else fun
        for transform in transforms:
            axes = {"in_axes": tuple(None if _is_static(arg) else 0 for arg in args)} if transform == "vmap" else {}
            self.fun = getattr(corejax, transform)(self.fun, **axes)

    def jaxpr(self) -> Any:
        """The function's jaxpr."""
        return corejax.make_jaxpr(self.fun, static_argnums=self.static_argnums)(*self.args, **self.kwargs)

    def run(self, step: Callable[[], R], doing: str = "while it was traced") -> R:
        """`step()`, where what it raises is the command's failure, in a sentence with the user's line.

        What it prints goes to standard error.

        Raises:
            click.ClickException: for every exception.
        """
        try:
            with _aside():
                return step()
        except (Exception, SystemExit) as error:
            _failed(f"{self.name} failed {doing}", error)


def takes_function(name: str) -> Callable[[Callable[..., None]], click.Command]:
    """Decorate a command's callback: it gets a `FunctionCall`, and its options by name.

    Args:
        name: the command's.
    """

    class FunctionCommand(click.Command):
        """Takes everything after `--args` up to the next option for an argument's type."""

        def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
            return super().parse_args(ctx, _types_last(args))

    def decorate(callback: Callable[..., None]) -> click.Command:
        @functools.wraps(callback)
        def run(function: str, types: Sequence[str], transforms: Sequence[str], **options: Any) -> None:
            try:
                args, kwargs = read_arguments(types)
            except ValueError as error:
                raise click.UsageError(f"--args: {error}") from None
            with _aside():
                fun = find_function(function)
            callback(FunctionCall(function, fun, args, kwargs, transforms), **options)

        choice = click.Choice(_TRANSFORMS)
        text = "Look at this transformation of the function; several are applied in the order given."
        run = click.option("--transform", "transforms", multiple=True, type=choice, help=text)(run)
        run = click.argument("types", nargs=-1, metavar="[--args] [TYPE]...")(run)
        run = click.argument("function", metavar="MODULE:FUNCTION")(run)
        return click.command(name, cls=FunctionCommand)(run)

    return decorate


def _aside() -> contextlib.redirect_stdout[Any]:
    """What the user's code prints goes to standard error: the command's output may be for a file."""
    return contextlib.redirect_stdout(sys.stderr)


def _is_static(arg: Any) -> bool:
    leaves = tree.tree_leaves(arg)
    return bool(leaves or arg is None) and not any(isinstance(leaf, ShapeDtypeStruct) for leaf in leaves)


def _types_last(tokens: Sequence[str]) -> list[str]:
    """A command line with what follows `--args` behind all options: types may look like options, as -1 does."""
    if "--args" not in tokens and not any(token.startswith("--args=") for token in tokens):
        return list(tokens)
    others: list[str] = []
    types: list[str] = []
    taking = False
    for i, token in enumerate(tokens):
        if token == "--":
            return [*others, "--", *types, *tokens[i + 1 :]]
        if token.startswith("--args="):
            types.append(token.removeprefix("--args="))
        elif token == "--args":
            taking = True
        else:
            taking = taking and not _OPTION.match(token)
            (types if taking else others).append(token)
    return [*others, "--", *types]


def find_function(text: str) -> Callable[..., Any]:
    """The function that `package.module:function` or `path/to/file.py:function` names.

    Raises:
        click.UsageError: there is no such module, file or function.
        click.ClickException: the module fails while it is imported.
    """
    place, colon, path = text.rpartition(":")
    if not (place and colon and path):
        raise click.UsageError(f"a function is named package.module:function or path/to/file.py:function, got {text!r}")
    found: Any = _file(place) if place.endswith(".py") else _module(place)
    for part in path.split("."):
        if not hasattr(found, part):
            known = [name for name in dir(found) if not name.startswith("__")]
            raise click.UsageError(f"{place} has no {path!r}{did_you_mean(part, known)}")
        found = getattr(found, part)
    if not callable(found):
        raise click.UsageError(f"{text} is no function: {path} is of type {type(found).__name__}")
    return found  # type: ignore[no-any-return]


def _module(name: str) -> Any:
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            _failed(f"module {name} failed while it was imported", error)
        hint = "; a file is named with .py" if os.path.exists(f"{name}.py") or "/" in name else ""
        raise click.UsageError(f"there is no module {error.name!r} here or on Python's path{hint}") from None
    except (Exception, SystemExit) as error:
        _failed(f"module {name} failed while it was imported", error)


def _file(path: str) -> Any:
    if not os.path.isfile(path):
        raise click.UsageError(f"there is no file {path!r}")
    directory, file = os.path.split(os.path.abspath(path))
    if directory not in sys.path:
        sys.path.insert(0, directory)  # as Python does with a program's own
    name = file.removesuffix(".py")
    name = f"{name}_py" if name in sys.modules else name
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        _failed(f"{path} failed while it was run", error)
    return module


def _failed(what: str, error: BaseException) -> NoReturn:
    where = raised_at(error)
    raise click.ClickException(f"{what}{f' at {where}' if where else ''}: {error_text(error)}") from error
