"""`corejax show PRIMITIVE`: shows the doc, the signature and the place of each rule of a primitive."""

from __future__ import annotations

import inspect
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any

import click

from corejax.extend import abstract_eval_rules, config, impl_rules, load_everything, registries
from corejax.extend.commands import (
    complain,
    named,
    no_such,
    optional_rules,
    print_json,
    report_faults,
    rule_statuses,
    say,
)
from corejax.extend.plugins import plugin_records
from corejax.extend.printing import plugin_access

if TYPE_CHECKING:
    from corejax.extend import Primitive

# Version of the printed JSON. New keys keep the version; removed keys and keys with a new meaning change it.
JSON_VERSION = 1


@click.command("show")
@click.argument("name", metavar="PRIMITIVE")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(name: str, as_json: bool) -> None:
    """Show one primitive: its doc, its signature, and the place of each rule.

    For the name of a plugin or a distribution, all its primitives are shown; JSON then has them as a list.

    Exit codes: 0; 1 if the plugin has no primitives here; 2 for an unknown name.
    """
    from corejax.extend import primitives  # it imports arrays

    load_everything()
    records = {record.name: record for record in plugin_records()}
    plugins = [] if name in primitives else named(records, name)
    if name not in primitives and not plugins:
        report_faults()
        home = plugin_access().whose_primitive(name)
        if home.endswith("?"):  # a question if no plugin is known that has the primitive
            raise click.UsageError(no_such("plugin and no primitive", name, [*primitives, *records]))
        raise click.UsageError(f"there is no plugin and no primitive named {name!r}; {home}")
    owners = {record.name for record in plugins}
    selected = [p for key, p in sorted(primitives.items()) if key == name or p.provenance.plugin in owners]
    described = [describe(primitive) for primitive in selected]
    if as_json:
        content = {"primitives": described} if plugins else described[0]
        print_json({"format": "corejax-show", "version": JSON_VERSION, **content})
        return
    text = "\n\n".join("\n".join(_text(p, each)) for p, each in zip(selected, described, strict=True))
    if sys.stdout.isatty():
        width = shutil.get_terminal_size().columns
        text = "\n".join(part for line in text.split("\n") for part in fold(line, width))
    say(text)
    report_faults()
    if not selected:
        complain(f"{' and '.join(f'plugin {record.title}' for record in plugins)} has no primitives here")
        click.get_current_context().exit(1)


def describe(primitive: Primitive) -> dict[str, Any]:
    """Return the description of a primitive as data, for scripts."""
    origin, body = primitive.provenance, primitive.decomposition
    return {
        "name": primitive.name,
        "defined": _place(origin),
        "doc": clean_doc(primitive.doc),
        "signature": signature(primitive),
        "multiple_results": primitive.multiple_results,
        "effects": sorted(primitive.effects),
        "linear_in": list(primitive.linear_in),
        "tags": sorted(primitive.tags),
        "decomposition": None if body is None else _place(origin.of(body, origin)),
        "rules": {kind: _describe_rule(kind, each, primitive) for kind, each in rule_statuses(primitive).items()},
        "optional_rules": {
            kind: _optional_rule(rules.entries(primitive))
            for kind, rules in optional_rules.items()
            if primitive in rules
        },
    }


def _describe_rule(kind: str, state: Any, primitive: Primitive) -> dict[str, Any]:
    registry = registries[kind]
    off: dict[str, list[Any]] = {}
    for platform, rule in registry.written(primitive):
        if rule.overriding and not config.overrides_are_on(rule.provenance.plugin):
            off.setdefault(platform or "all", []).append(_rule(rule))
    return {
        "status": state.status,
        "rule": None if state.rule is None else _rule(state.rule),
        "derived_by": state.derivation,
        "derivations": [derivation.name for derivation in registry.derivations],
        "platforms": {platform: _rule(rule) for platform, rule in state.platforms.items()},
        "switched_off": off,
    }


def _rule(rule: Any) -> dict[str, Any]:
    overridden = None if rule.overridden is None else _rule(rule.overridden)
    return _written_rule(rule.provenance, rule.fn, rule.flags, overridden)


def _optional_rule(entries: Sequence[Any]) -> dict[str, Any]:
    first, *others = entries
    return _written_rule(first.provenance, first.value, {}, _optional_rule(others) if others else None)


def _written_rule(where: Any, fn: Any, flags: Mapping[str, Any], overridden: dict[str, Any] | None) -> dict[str, Any]:
    return {
        **_place(where),
        "helper": getattr(fn, "__helper__", None),
        "flags": {name: _named(value) for name, value in flags.items()},
        "overrides": overridden,
    }


def _named(flag: Any) -> Any:
    """Replace a flag that is a function by its name, since its `repr` has only an address."""
    if not isinstance(flag, FunctionType):
        return flag
    return f"{flag.__module__}.{flag.__qualname__}".replace("<locals>.", "")


def _place(where: Any) -> dict[str, Any]:
    return {name: getattr(where, name) for name in ("owner", "plugin", "version", "module", "file", "line")}


# -- doc and signature -------------------------------------------------------------------------------------------


def clean_doc(doc: str) -> str:
    """Remove the indentation of a docstring, and all but the summary of NumPy's docstrings of impl rules."""
    text = inspect.cleandoc(doc)
    head, separator, _ = text.partition("\nParameters\n----")
    if not separator:
        return text
    paragraphs = head.strip().split("\n\n")
    return "\n\n".join(p for p in paragraphs if not (p.startswith(paragraphs[0]) and p.endswith(")")))


def signature(primitive: Primitive) -> str:
    """Return how the primitive is bound, from its rules: operands, then static parameters after a `*`."""
    parameters = [list(_parameters(fn)) for fn in _written(primitive)]
    operands = next((named for each in parameters if (named := _operands(each))), None)
    if operands is None:
        operands = next((_operands(each, stars=True) for each in parameters), []) or ["*operands"]
    rule = impl_rules.rule_of(primitive)
    if operands == ["*operands"] and isinstance(getattr(rule and rule.fn, "nin", None), int):
        operands = list("xyz"[: rule.fn.nin])  # type: ignore[union-attr]  # a NumPy ufunc
    static = next((named for each in parameters if (named := _static(each))), [])
    separator = ["*"] if static and not operands[-1].startswith("*") else []
    return f"{primitive.name}({', '.join([*operands, *separator, *static])})"


def _written(primitive: Primitive) -> Iterator[Callable[..., Any]]:
    """Yield the functions that take the primitive's operands and parameters, those with the best names first."""
    rules = (impl_rules.rule_of(primitive), abstract_eval_rules.rule_of(primitive))
    for fn in (*(rule.fn for rule in rules if rule is not None and rule.derived is None), primitive.decomposition):
        if fn is not None and inspect.isroutine(inspect.unwrap(fn)) and hasattr(fn, "__code__"):
            yield fn


def _parameters(fn: Callable[..., Any]) -> Iterator[inspect.Parameter]:
    # `_name=...` binds the variable of a loop in which a rule is made; it is not a parameter.
    yield from (p for p in inspect.signature(fn).parameters.values() if not p.name.startswith("_"))


def _operands(parameters: list[inspect.Parameter], *, stars: bool = False) -> list[str]:
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [p.name for p in parameters if p.kind in positional]
    return names + ["*operands" for p in parameters if stars and p.kind is inspect.Parameter.VAR_POSITIONAL]


def _static(parameters: list[inspect.Parameter]) -> list[str]:
    named = [p for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY]
    return [p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in named]


# -- text --------------------------------------------------------------------------------------------------------


def _text(primitive: Primitive, described: dict[str, Any]) -> Iterator[str]:
    yield f"{primitive.name}  ({described['defined']['owner']})"
    if described["doc"]:
        yield ""
        yield from (f"  {line}".rstrip() for line in described["doc"].splitlines())
    yield ""
    yield f"  signature    {described['signature']}"
    yield f"  defined      {_location(described['defined'])}"
    if described["decomposition"]:
        yield f"  decomposed   {_location(described['decomposition'])}"
    yield from (f"  {name:<11}  {value}" for name, value in _flags(primitive))
    yield ""
    yield "  rules"
    rows = [row for kind, found in described["rules"].items() for row in _rule_rows(kind, found)]
    rows += [row for kind, rule in described["optional_rules"].items() for row in _written_rows(kind, "own", rule)]
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    lines = [[cell.ljust(width) for cell, width in zip(row, widths, strict=False)] + row[3:] for row in rows]
    whole = ["    " + "  ".join(line).rstrip() for line in lines]
    narrow = sys.stdout.isatty() and max(map(len, whole)) > shutil.get_terminal_size().columns
    for row, line in zip(rows, whole, strict=True):
        yield from [line] if not narrow else _folded(row, widths)
    for kind, found in described["rules"].items():
        if found["status"] == "missing":
            yield ""
            yield f"  {registries[kind].title} to write:"
            yield ""
            yield registries[kind].template_for(primitive)


def fold(line: str, width: int) -> list[str]:
    """Break a line that is wider than the terminal, after spaces and slashes, with the same indentation."""
    text = line.lstrip()
    indent = line[: len(line) - len(text)]
    lines = [""]
    for part in re.findall(r"[^/ ]+[/ ]*|[/ ]+", text):
        if lines[-1] and len(indent + lines[-1] + part.rstrip()) > width:
            lines.append("")
        lines[-1] += part
    return [(indent + each).rstrip() for each in lines]


def _folded(row: list[str], widths: list[int]) -> Iterator[str]:
    """Yield a rule's kind and status, then its owner and its place on lines of their own, for a narrow terminal."""
    yield f"    {row[0].ljust(widths[0])}  {row[1]}".rstrip()
    yield from (f"      {cell}" for cell in row[2:] if cell)


def _flags(primitive: Primitive) -> Iterator[tuple[str, str]]:
    yield "results", "a list" if primitive.multiple_results else "one"
    if primitive.effects:
        yield "effects", ", ".join(sorted(primitive.effects))
    if primitive.linear_in:
        yield "linear in", "operand " + ", ".join(map(str, primitive.linear_in))
    if primitive.tags:
        yield "tags", ", ".join(sorted(primitive.tags))


def _rule_rows(kind: str, found: dict[str, Any]) -> Iterator[list[str]]:
    """Yield rows of rule kind, status, owner and place: for the rule, its platforms, and the rules it overrides."""
    order = f"(order: {', '.join(found['derivations'])})" if len(found["derivations"]) > 1 else ""
    if found["status"] == "derived":
        yield [kind, "derived", f"by {found['derived_by']}", order]
    elif found["rule"] is None:
        yield [kind, found["status"].replace("_", " "), "", order if found["status"] == "missing" else ""]
    else:
        yield from _written_rows(kind, "own", found["rule"])
    for platform, rule in found["platforms"].items():
        yield from _written_rows("", f"on {platform}", rule)
    for rules in found["switched_off"].values():
        for rule in rules:
            yield ["", "switched off", rule["owner"], f"{_location(rule)} (rule_overrides={config.rule_overrides})"]


def _written_rows(kind: str, status: str, rule: dict[str, Any]) -> Iterator[list[str]]:
    notes = [f"by {rule['helper']}"] if rule["helper"] else []
    notes += [f"{k}={v}" for k, v in rule["flags"].items()]
    yield [kind, status, rule["owner"], _location(rule) + (f" ({', '.join(notes)})" if notes else "")]
    if rule["overrides"] is not None:
        yield from _written_rows("", "overrides", rule["overrides"])


def _location(place: dict[str, Any]) -> str:
    """Format `file:line`, relative to the working directory if it is inside, for terminals and editors to open."""
    if place["file"] is None:
        return str(place["module"])
    file = os.path.abspath(place["file"])
    here = os.path.join(os.getcwd(), "")
    return f"{file.removeprefix(here)}:{place['line']}"
