"""Commands that inspect a function: `takes_function` makes them, and passes a `FunctionCall` to their callbacks.

The function is found by name, and its arguments are given as types. What needs arrays is imported when a command runs,
so that its `--help` is quick.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import inspect
import os
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

import click

import corejax
from corejax.extend.messages import did_you_mean, error_text, raised_at

R = TypeVar("R")

_TRANSFORMS = ("grad", "value_and_grad", "vmap")
_OPTION = re.compile(r"--?(?!inf\b|nan\b)[A-Za-z]")


class FunctionCall:
    """A function and its arguments, from a command line.

    Attributes:
        name: name of the function on the command line.
        fun: the function, with its static keyword arguments bound and transformations applied.
        args, kwargs: pytrees of `ShapeDtypeStruct`s; a value if an argument contains no type.
        static_argnums: positions of arguments that are values.
        untouched: the function itself and all keyword arguments, or None if there are transformations.
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
        """Trace the function and return its jaxpr."""
        return corejax.make_jaxpr(self.fun, static_argnums=self.static_argnums)(*self.args, **self.kwargs)

    def run(self, step: Callable[[], R], doing: str = "while it was traced") -> R:
        """Call `step()` with its output on standard error, and turn an exception into a failure of the command.

        Raises:
            click.ClickException: `step` raised; the message has the error and the user's line.
        """
        try:
            with _output_to_stderr():
                return step()
        except (Exception, SystemExit) as error:
            _fail(f"{self.name} failed {doing}", error)


def takes_function(name: str) -> Callable[[Callable[..., None]], click.Command]:
    """Decorate a callback to make it a command. The callback gets a `FunctionCall`, and its options by name.

    Args:
        name: name of the command.
    """

    class FunctionCommand(click.Command):
        """A command that takes everything between `--args` and the next option as types of arguments."""

        def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
            """Parse a command line after its types are moved to the end."""
            return super().parse_args(ctx, _types_last(args))

    def decorate(callback: Callable[..., None]) -> click.Command:
        @functools.wraps(callback)
        def run(function: str, types: Sequence[str], transforms: Sequence[str], **options: Any) -> None:
            from corejax_explain._typed_arguments import read_arguments

            try:
                args, kwargs = read_arguments(types)
            except ValueError as error:
                raise click.UsageError(f"--args: {error}") from None
            with _output_to_stderr():
                fun = find_function(function)
            if not types:
                _require_no_arguments(function, fun)
            callback(FunctionCall(function, fun, args, kwargs, transforms), **options)

        choice = click.Choice(_TRANSFORMS)
        text = "Inspect this transformation of the function; several are applied in the order given."
        run = click.option("--transform", "transforms", multiple=True, type=choice, help=text)(run)
        run = click.argument("types", nargs=-1, metavar="[--args] [TYPE]...")(run)
        run = click.argument("function", metavar="MODULE:FUNCTION")(run)
        return click.command(name, cls=FunctionCommand)(run)

    return decorate


def _require_no_arguments(name: str, fun: Callable[..., Any]) -> None:
    """Raise UsageError if a function has arguments without defaults."""
    try:
        parameters = inspect.signature(fun).parameters.values()
    except (TypeError, ValueError):  # no signature: tracing will tell
        return
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [p.name for p in parameters if p.default is p.empty and p.kind not in variadic]
    if needed:
        raise click.UsageError(f"{name} takes {', '.join(needed)}; give their types after --args, as f32[3,4]")


def _output_to_stderr() -> contextlib.redirect_stdout[Any]:
    """Redirect the output of the user's code to standard error, since that of the command may go to a file."""
    return contextlib.redirect_stdout(sys.stderr)


def _is_static(arg: Any) -> bool:
    from corejax.extend import tree
    from corejax.extend.types import ShapeDtypeStruct

    leaves = tree.tree_leaves(arg)
    return bool(leaves or arg is None) and not any(isinstance(leaf, ShapeDtypeStruct) for leaf in leaves)


def _types_last(tokens: Sequence[str]) -> list[str]:
    """Move the words after `--args` behind all options and `--`, since a type may look like an option, as -1 does."""
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
    """Import the function that `package.module:function` or `path/to/file.py:function` names.

    Raises:
        click.UsageError: the module, file or function does not exist.
        click.ClickException: the module raises while it is imported.
    """
    place, colon, path = text.rpartition(":")
    if not (place and colon and path):
        raise click.UsageError(f"a function is named package.module:function or path/to/file.py:function, got {text!r}")
    value: Any = _import_file(place) if place.endswith(".py") else _import_module(place)
    for part in path.split("."):
        if not hasattr(value, part):
            known = [name for name in dir(value) if not name.startswith("__")]
            raise click.UsageError(f"{place} has no {path!r}{did_you_mean(part, known)}")
        value = getattr(value, part)
    if not callable(value):
        raise click.UsageError(f"{text} is not a function: {path} is of type {type(value).__name__}")
    found: Callable[..., Any] = value
    return found


def _import_module(name: str) -> Any:
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            _fail(f"module {name} failed while it was imported", error)
        hint = "; a file is named with .py" if os.path.exists(f"{name}.py") or "/" in name else ""
        raise click.UsageError(f"there is no module {error.name!r} here or on Python's path{hint}") from None
    except (Exception, SystemExit) as error:
        _fail(f"module {name} failed while it was imported", error)


def _import_file(path: str) -> Any:
    if not os.path.isfile(path):
        raise click.UsageError(f"there is no file {path!r}")
    directory, file = os.path.split(os.path.abspath(path))
    if directory not in sys.path:
        sys.path.insert(0, directory)  # as Python does with the directory of a program
    name = file.removesuffix(".py")
    name = f"{name}_py" if name in sys.modules else name
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        _fail(f"{path} failed while it was run", error)
    return module


def _fail(what: str, error: BaseException) -> NoReturn:
    line = raised_at(error)
    raise click.ClickException(f"{what}{f' at {line}' if line else ''}: {error_text(error)}") from error
