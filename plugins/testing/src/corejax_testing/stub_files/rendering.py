"""Render the lines of a stub, name by name."""

from __future__ import annotations

import ast
import functools
import inspect
import re
import sys
import textwrap
import types
import typing
from collections.abc import Iterator
from typing import Any

import corejax
from corejax_testing.stub_files import results_by_flag, types_by_name

HEADER = """\
# Written by `corejax write-stubs`.
# ruff: noqa
# mypy: ignore-errors
import builtins as _b
import collections.abc as _c
import typing as _t

from corejax.arrays.array import Array as _Array
from corejax.typing import ArrayLike as _ArrayLike
from corejax.typing import DTypeLike as _DTypeLike
"""
_ALIASES = {"builtins": "_b", "collections.abc": "_c", "typing": "_t"}
_EMPTY = inspect.Parameter.empty


class Generic(Exception):
    """A signature has type variables, so the stub imports the function from its source."""


class Stub:
    """The text of a stub file, name by name.

    Args:
        package: the plugin's package; its modules are searched first for an object.
        namespace: the namespace of the names, such as "numpy.linalg".
    """

    def __init__(self, package: str, namespace: str = "") -> None:
        self.package = package
        self.namespace = namespace
        self.trees = package in types_by_name.OF_TREES
        self.imports: set[str] = set()
        self.lines: list[str] = []

    def text(self) -> str:
        """Return the file's text."""
        return "\n".join([HEADER, *sorted(self.imports), "", *self.lines, ""])

    def add(self, name: str, value: Any) -> None:
        """Add a name of a namespace."""
        home = self._home(value) if isinstance(value, type | types.FunctionType) else None
        if type(value).__module__.partition(".")[0] == self.package and isinstance(value, type):
            home = None  # a class made by a call of a metaclass, whose source shows no members
        if home and (isinstance(value, type) or self._is_complete(value)):
            same = home[1] == name  # `import a as b` exports the name only if both are the same (PEP 484)
            self.lines.append(f"from {home[0]} import {name} as {name}" if same else f"{name} = {home[0]}.{home[1]}")
            self.imports |= set() if same else {f"import {home[0]}"}
        elif isinstance(value, types.FunctionType | types.BuiltinFunctionType | functools.partial):
            cases = results_by_flag.CASES.get(f"{self.namespace}.{name}")
            self.lines += self._overloads(name, value, cases) if cases else self.function(name, value)
        elif not isinstance(value, type) and (members := self._functions(value)):
            self.lines.append(f"class _{name}({self._class_of(value)}):")
            for member, function in members.items():
                bound = member == "__call__"
                lines = self.function(member, function, first="self" if bound else "", kind=name if bound else member)
                self.lines += ([] if bound else ["    @staticmethod"]) + ["    " + line for line in lines]
            self.lines.append(f"{name}: _{name}")
        elif isinstance(value, types.GenericAlias | types.UnionType):
            self.lines.append(f"{name} = {self.type(value)}")
        else:
            self.lines.append(f"{name}: {'None' if value is None else self._class(type(value))}")

    def _overloads(self, name: str, value: Any, cases: results_by_flag.Cases) -> Iterator[str]:
        """Yield an overload for each case, and a last one for flags whose values a type checker does not know."""
        for case, result in [*cases, ({}, "_t.Any")]:
            self.imports |= {f"import {module}" for module in re.findall(r"(corejax_[\w.]+)\.\w+", result)}
            yield "@_t.overload"
            yield from self.function(name, value, case=case, result=result)

    def _functions(self, value: Any) -> dict[str, Any]:
        """Return the functions of a module by name, or a callable object as `__call__`."""
        if isinstance(value, types.ModuleType):
            return {key: each for key, each in vars(value).items() if callable(each) and not key.startswith("_")}
        return {"__call__": value} if callable(value) and self._signature(value) else {}

    def _class_of(self, value: Any) -> str:
        return next(text for each in type(value).__mro__ if (text := self._class(each)) != "_t.Any")

    def function(
        self,
        name: str,
        value: Any,
        first: str = "",
        kind: str = "",
        drop: int = 0,
        case: results_by_flag.Case | None = None,
        result: str = "",
    ) -> Iterator[str]:
        """Yield the lines of a function.

        Args:
            name: the name of the function.
            value: the function.
            first: the first parameter, "self" for a method.
            kind: the name by which `types_by_name` chooses types; by default `name`.
            drop: the number of the function's own parameters that `first` replaces.
            case: values of parameters, for which an overload is written.
            result: type of the result; by default it is derived.
        """
        signature = self._signature(value)
        if signature is None:
            yield f"{name}: _t.Any"
            return
        hints = self._hints(value)
        kind = kind or name
        parameters = [first] if first else []
        shown = list(signature.parameters.values())[drop:]
        seen_star = seen_optional = False
        for i, parameter in enumerate(shown):
            text = self._parameter(kind, parameter, hints)
            if case and parameter.name in case:
                text = _with_value(text, parameter, case[parameter.name])
            is_optional = " = " in text
            # A required flag can follow optional parameters only by keyword.
            by_keyword = parameter.kind is parameter.KEYWORD_ONLY or bool(case and seen_optional and not is_optional)
            if by_keyword and not seen_star:
                parameters.append("*")
                seen_star = True
            seen_star |= parameter.kind is parameter.VAR_POSITIONAL
            seen_optional |= is_optional
            parameters.append(text)
            last = i + 1 == len(shown) or shown[i + 1].kind is not parameter.POSITIONAL_ONLY
            if parameter.kind is parameter.POSITIONAL_ONLY and last:
                parameters.append("/")
        result = result or self._result(kind, signature, hints)
        yield f"def {name}({', '.join(parameters)}) -> {result}:"
        yield from textwrap.indent(docstring(value), "    ").splitlines()
        yield "    ..."

    def method(self, name: str, value: Any) -> None:
        """Add a method or property that a plugin provides for arrays."""
        if isinstance(value, property):
            hint = self._hints(value.fget).get("return", Any)
            result = types_by_name.ARRAY if hint is Any and not self.trees else self.type(hint)
            self.lines += ["    @property", f"    def {name}(self) -> {result}:"]
            self.lines += [*textwrap.indent(docstring(value.fget), "        ").splitlines(), "        ..."]
        else:
            self.lines += ["    " + line for line in self.function(name, value, first="self", drop=1)]

    def _parameter(self, function: str, parameter: inspect.Parameter, hints: dict[str, Any]) -> str:
        star = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(parameter.kind.name, "")
        hint = hints.get(parameter.name, Any)
        if function.startswith("__") and parameter.name == "other":
            kind = "_ArrayLike"
        elif hint is not Any:
            kind = self.type(hint)
        elif star or self.trees:
            kind = "_DTypeLike | None" if parameter.name == "dtype" else "_t.Any"
        else:
            kind = types_by_name.parameter_type(function, parameter.name, parameter.default)
        if parameter.default is None and kind not in ("None", "_t.Any") and "None" not in kind:
            kind += " | None"
        default = "" if parameter.default is _EMPTY else f" = {_default(parameter.default)}"
        return f"{star}{parameter.name}: {kind}{default}"

    def _result(self, function: str, signature: inspect.Signature, hints: dict[str, Any]) -> str:
        hint = hints.get("return", Any)
        if self.trees or function in types_by_name.NOT_ARRAYS:
            return self.type(hint)
        if hint is Any:
            return types_by_name.ARRAY
        return self.type(hint, any_=types_by_name.ARRAY if typing.get_origin(hint) in (tuple, list) else "_t.Any")

    def type(self, hint: Any, any_: str = "_t.Any") -> str:
        """Return the text of a type; `any_` stands for `Any`."""
        if hint is Any or hint is _EMPTY or isinstance(hint, str | typing.ForwardRef):
            return any_
        if hint is None or hint is type(None):
            return "None"
        if hint is ...:
            return "..."
        if hint in (corejax.typing.ArrayLike, corejax.typing.DTypeLike):
            return "_ArrayLike" if hint == corejax.typing.ArrayLike else "_DTypeLike"
        if isinstance(hint, list):
            return f"[{', '.join(self.type(each) for each in hint)}]"
        if isinstance(hint, typing.TypeVar | typing.ParamSpec):
            raise Generic
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if origin in (typing.Union, types.UnionType):
            return " | ".join(dict.fromkeys(self.type(each) for each in arguments))
        if origin is typing.Literal:
            return f"_t.Literal[{', '.join(map(repr, arguments))}]"
        if origin is not None:
            inside = "[()]" if not arguments else f"[{', '.join(self.type(each, any_) for each in arguments)}]"
            return self.type(origin) + inside
        return self._class(hint)

    def _class(self, hint: Any) -> str:
        if hint is corejax.Array:
            return types_by_name.ARRAY
        home = self._home(hint) if inspect.isclass(hint) else None
        if home is None:
            return "_t.Any"
        module, name = home
        if module not in _ALIASES:
            self.imports.add(f"import {module}")
        return f"{_ALIASES.get(module, module)}.{name}"

    def _home(self, value: Any) -> tuple[str, str] | None:
        """Return a module that contains an object, and its name there; None if no module does."""
        module, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
        if module == "builtins":
            return "builtins", str(name)
        inside = [m for m in list(sys.modules) if m.partition(".")[0] == self.package]
        for home in [module, *inside] if module else inside:
            if home in sys.modules and vars(sys.modules[home]).get(str(name)) is value and not _is_facade(home):
                return str(home), str(name)
        return None

    def _is_complete(self, value: Any) -> bool:
        """Return whether the source of a function annotates all of its types."""
        if typing.get_overloads(value):
            return True
        signature, hints = inspect.signature(value), self._hints(value)
        try:
            shown = [self.type(hint) for hint in hints.values()]
        except Generic:
            return True
        return len(hints) > len(signature.parameters) and not any("Any" in text for text in shown)

    def _signature(self, value: Any) -> inspect.Signature | None:
        try:
            return inspect.signature(value)
        except (TypeError, ValueError):
            return None

    def _hints(self, value: Any) -> dict[str, Any]:
        """Return the annotations of a function as objects, `Any` for one that cannot be evaluated."""
        function = inspect.unwrap(value)
        function = getattr(function, "func", function)
        known = _globals(getattr(function, "__module__", None) or "") | getattr(function, "__globals__", {})
        found = {}
        for name, annotation in getattr(function, "__annotations__", {}).items():
            try:
                found[name] = eval(annotation, known) if isinstance(annotation, str) else annotation
            except Exception:
                found[name] = Any
        return found


def _is_facade(module: str) -> bool:
    return module.startswith("corejax.") and not getattr(sys.modules[module], "__name__", "").startswith(module)


@functools.cache
def _globals(module: str) -> dict[str, Any]:
    """Return the names that a module imports under `if TYPE_CHECKING`."""
    found: dict[str, Any] = {}
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (KeyError, OSError, TypeError, SyntaxError):
        return found
    for node in tree.body:
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            for line in node.body:
                with_context = compile(ast.Module([line], []), module, "exec")
                try:
                    exec(with_context, found)
                except ImportError:
                    continue
    found.pop("__builtins__", None)
    return found


def _with_value(text: str, parameter: inspect.Parameter, value: Any) -> str:
    """Return a parameter's text in an overload for a value, or for one of several values in a tuple."""
    if value is results_by_flag.GIVEN:
        return text.rpartition(" = ")[0].removesuffix(" | None")
    values = value if isinstance(value, tuple) else (value,)
    default = f" = {parameter.default!r}" if any(parameter.default is each for each in values) else ""
    return f"{parameter.name}: _t.Literal[{', '.join(map(repr, values))}]{default}"


def _default(value: Any) -> str:
    plain = value is None or isinstance(value, bool | int | float | str)
    return (
        repr(value)
        if plain and repr(value) not in ("nan", "inf", "-inf") and type(value).__module__ == "builtins"
        else "..."
    )


def docstring(value: Any) -> str:
    """Return the docstring of a function as a literal, or "" if it has none."""
    text = (inspect.getdoc(value) or "").replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    return f'"""{text}\n"""' if "\n" in text or text.endswith('"') else f'"""{text}"""' if text else ""
