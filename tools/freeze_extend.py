"""The surface of `corejax.extend` and its chapters as text, one line for each thing that an author can rely on.

    python tools/freeze_extend.py            # accept the surface as it is: rewrite the committed file
    python tools/freeze_extend.py --check    # say what differs; exit status 1 if something does

What breaks authors is marked. Deprecate it first, or raise API_VERSION.
"""

from __future__ import annotations

import ast
import enum
import inspect
import os
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

FILE = Path(__file__).resolve().parent.parent / "tests" / "packaging" / "extend_surface.txt"
HEADER = """\
# What authors can rely on in corejax.extend: names, signatures, public attributes, hooks, rule kinds, settings.
# Written by `python tools/freeze_extend.py`; the rules for changes are in the docstring of corejax/extend/__init__.py.
"""
ACCEPT = "To accept: python tools/freeze_extend.py (and a sentence in changes/)"


# -- what there is -------------------------------------------------------------------------------------------------


def surface() -> dict[str, str]:
    """Line of every thing, by what it is about. Plugins must be off: they add methods, settings and rule kinds."""
    os.environ["COREJAX_PLUGINS"] = ""
    import corejax.extend as extend
    from corejax.plugins import hookspecs

    lines = {"API_VERSION": f"API_VERSION = {hookspecs.API_VERSION}"}
    for name in sorted(extend.__all__):
        lines.update(_described(name, getattr(extend, name)))
    for chapter in chapters():
        module = import_module(f"corejax.extend.{chapter}")
        for name in sorted(set(module.__all__) - {"API_VERSION"}):
            lines.update(_described(f"{chapter}.{name}", getattr(module, name)))
    for name in sorted(n for n in dir(hookspecs) if n.startswith("corejax_")):
        lines[f"hook {name}"] = f"hook {name}{signature(getattr(hookspecs, name))}"
    for name in sorted(extend.registries):
        lines[f"rule kind {name}"] = _rule_kind(extend.registries[name])
    for name in sorted(vars(extend.config)["_settings"]):
        lines[f"setting {name}"] = f"setting {name}"
    return lines


def chapters() -> list[str]:
    """Return the chapters whose names are kept."""
    import corejax.extend as extend

    may_change = {"printing", "speed"}  # in any version
    return sorted({m.name for m in iter_modules(extend.__path__) if not m.name.startswith("_")} - may_change)


def _rule_kind(registry: Any) -> str:
    flags = "".join(f", flag {flag}" for flag in sorted(registry.flags))
    return f"rule kind {registry.kind}: {'required' if registry.required else 'optional'}{flags}"


def _described(name: str, thing: Any) -> Iterator[tuple[str, str]]:
    if isinstance(thing, ModuleType):
        yield name, f"module {name}"
        for inner in sorted(_public_of(thing)):
            yield from _described(f"{name}.{inner}", getattr(thing, inner))
    elif isinstance(thing, type):
        bases = ", ".join(base.__name__ for base in thing.__bases__ if base is not object)
        yield name, f"class {name}{_constructor(thing)}{f': {bases}' if bases else ''}"
        yield from _members(name, thing)
    elif inspect.isroutine(thing):
        yield name, f"{name}{signature(thing)}"
    else:
        yield name, f"{name}: {'dict' if isinstance(thing, dict) else type(thing).__name__}"


def _public_of(module: ModuleType) -> list[str]:
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return list(listed)
    root = module.__name__
    return [
        name
        for name, thing in vars(module).items()
        if not name.startswith("_") and (getattr(thing, "__module__", None) or "").startswith(root)
    ]


def _constructor(cls: type) -> str:
    if issubclass(cls, BaseException | enum.Enum) or getattr(cls, "_is_protocol", False):
        return ""
    return signature(cls)


def _members(name: str, cls: type) -> Iterator[tuple[str, str]]:
    """Public attributes of a class, those of its bases in corejax included."""
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith("corejax"):
            found.update(dict.fromkeys(inspect.get_annotations(base), None))
            found.update({k: v for k, v in vars(base).items() if k not in found or v is not None})
    for member in sorted(found):
        if member.startswith("_"):
            continue
        value = found[member]
        if isinstance(value, classmethod | staticmethod):
            text = f"{name}.{member}{signature(getattr(cls, member))}"
        elif inspect.isfunction(value):
            text = f"{name}.{member}{signature(value)}"
        else:
            text = f"{name}.{member}"
        yield f"{name}.{member}", text


def signature(thing: Any) -> str:
    """Parameters with kinds and defaults, without annotations: `(x, *rest, axis=0)`."""
    try:
        given = inspect.signature(thing)
    except (TypeError, ValueError):
        return "(...)"
    plain = [
        p.replace(annotation=p.empty, default=p.empty if p.default is p.empty else _Shown(p.default))
        for p in given.parameters.values()
    ]
    return str(given.replace(parameters=plain, return_annotation=inspect.Signature.empty))


class _Shown:
    """A default as an expression; `...` where it has no short one."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        plain = self.value is None or isinstance(self.value, bool | int | float | str | tuple)
        return repr(self.value) if plain and "0x" not in repr(self.value) else "..."


# -- what differs --------------------------------------------------------------------------------------------------


def read(text: str) -> dict[str, str]:
    """Return the lines of the file, keyed by the name that each line describes."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return {_about(line): line for line in lines}


def _about(line: str) -> str:
    for head in ("hook ", "rule kind ", "setting "):
        if line.startswith(head):
            return head + line.removeprefix(head).partition("(" if head == "hook " else ":")[0]
    plain = line.removeprefix("class ").removeprefix("module ")
    for stop in ("(", ":", " ="):
        plain = plain.partition(stop)[0]
    return plain


def differences(old: dict[str, str], new: dict[str, str]) -> list[str]:
    """One line or three for each difference; what breaks authors says so."""
    found = []
    for name in sorted({*old, *new}):
        was, now = old.get(name), new.get(name)
        if was is None:
            found.append(f"+ {now}")
        elif now is None:
            found.append(f"- {was}   <- BREAKS authors: deprecate it")
        elif was != now:
            note = "" if is_compatible(was, now) else "   <- BREAKS authors: only optional arguments may come"
            found.append(f"~ {name}{note}\n    was: {was}\n    now: {now}")
    return found


def is_compatible(was: str, now: str) -> bool:
    """Whether every call that fits the old line fits the new one; hooks may get arguments."""
    if was.startswith("hook "):
        return set(_names(was)) <= set(_names(now))
    if was.startswith("rule kind "):
        return set(was.split(", ")[1:]) <= set(now.split(", ")[1:]) and not ("optional" in was and "required" in now)
    before, after = ((line.partition("(")[0], line.rpartition(")")[2]) for line in (was, now))
    if before != after or "(" not in was or "(...)" in (was + now):
        return False
    return _accepts(_arguments(was), _arguments(now))


def _arguments(line: str) -> ast.arguments:
    parameters = line[line.index("(") : line.rindex(")") + 1]
    function = ast.parse(f"def f{parameters}: pass").body[0]
    assert isinstance(function, ast.FunctionDef)
    return function.args


def _names(line: str) -> list[str]:
    args = _arguments(line)
    return [a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs)]


def _accepts(old: ast.arguments, new: ast.arguments) -> bool:
    was, now = [*old.posonlyargs, *old.args], [*new.posonlyargs, *new.args]
    kept = [a.arg for a in was]
    if [a.arg for a in now][: len(kept)] != kept or len(new.posonlyargs) > len(old.posonlyargs):
        return False
    if len(now) - len(new.defaults) > len(was) - len(old.defaults):  # one became required
        return False
    if (old.vararg and not new.vararg) or (old.kwarg and not new.kwarg):
        return False
    names = {a.arg for a in (*new.args, *new.kwonlyargs)}
    required = {a.arg for a, d in zip(new.kwonlyargs, new.kw_defaults, strict=True) if d is None}
    required -= {a.arg for a, d in zip(old.kwonlyargs, old.kw_defaults, strict=True) if d is None}
    return not required and all(a.arg in names for a in old.kwonlyargs)


# -- the command ---------------------------------------------------------------------------------------------------


def main(arguments: list[str]) -> int:
    """Rewrite the file, or with `--check` say what differs."""
    new = surface()
    found = differences(read(FILE.read_text()) if FILE.exists() else {}, new)
    print("\n".join(found) or "corejax.extend is as it was")
    if "--check" in arguments:
        if found:
            print(ACCEPT)
        return 1 if found else 0
    FILE.write_text(HEADER + "\n".join(new.values()) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
