"""`corejax jaxpr`: the program of a function, as text, picture, table or JSON."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from corejax.extend.messages import json_text, shown
from corejax_explain.commands import FunctionCall, takes_function

if TYPE_CHECKING:
    from corejax.extend import ClosedJaxpr, Jaxpr

# Version of the printed JSON. New keys keep the version; removed keys and keys with a new meaning change it.
JSON_VERSION = 1


@takes_function("jaxpr")
@click.option("--source", "form", flag_value="source", help="End each equation with the user's line.")
@click.option("--count", "form", flag_value="count", help="A table of primitives and their numbers of equations.")
@click.option("--dot", "form", flag_value="dot", help="A graph in Graphviz' language.")
@click.option("--svg", "form", flag_value="svg", help="A picture; Graphviz is not needed.")
@click.option("--html", "form", flag_value="html", help="The picture with the text below it, for a browser.")
@click.option("--json", "form", flag_value="json", help="Text, types and counts as JSON.")
def jaxpr(call: FunctionCall, form: str | None) -> None:
    """Print the jaxpr of a function.

    The function is traced on types of arguments, and not run. A TYPE is written as in jaxprs, f32[3,4] or i32[];
    pytrees as in Python, {"w": f32[3,3]} or (f32[3], i32[]); n=f32[3] is a keyword argument. An argument
    without a type in it, 3 or "relu", is passed to the function unchanged (static).

    \b
    Examples
      corejax jaxpr corejax.numpy:dot --args "f32[3,4]" "f32[4]"
      corejax jaxpr model.py:loss --args '{"w": f32[3,3]}, f32[8,3]' --transform grad --count
      corejax jaxpr model.py:loss --args '{"w": f32[3,3]}, f32[8,3]' --svg > loss.svg

    \b
    Exit codes
      0  the program is printed
      1  the module failed while it was imported, or the function while it was traced
      2  wrong usage: an unknown module or function, or a malformed type
    """
    program = call.run(call.jaxpr)
    if form == "count":
        _print_counts(call.name, program)
    elif form == "json":
        click.echo(json_text(_as_json(call.name, program)))
    else:
        click.echo(shown(_text(program, form)), nl=form not in ("dot", "svg", "html"))


def _text(program: ClosedJaxpr, form: str | None) -> str:
    from corejax_explain.drawing import draw_jaxpr

    if form == "dot":
        return program.to_dot()
    if form == "svg":
        return program.to_svg()
    if form == "html":
        return f'<!DOCTYPE html>\n<meta charset="utf-8">\n{draw_jaxpr(program).html()}'
    return program.pretty(source_info=form == "source")


def count_primitives(program: ClosedJaxpr | Jaxpr) -> tuple[Counter[Any], Counter[Any]]:
    """Count the equations of each primitive: in total, and in programs inside equations."""
    from corejax.extend.programs import subjaxprs  # it imports arrays

    outside, inside = Counter(eqn.primitive for eqn in program.eqns), Counter[Any]()
    for eqn in program.eqns:
        for inner in subjaxprs(eqn.params):
            inside += count_primitives(inner)[0]
    return outside + inside, inside


def _print_counts(name: str, program: ClosedJaxpr) -> None:
    from corejax_explain._tables import Table, print_tables

    total, inside = count_primitives(program)
    counts = sorted(total.items(), key=lambda item: (-item[1], item[0].name))
    rows: list[tuple[str, ...]] = [(p.name, str(n), str(inside[p] or ""), p.provenance.plugin or "") for p, n in counts]
    summary = f"{name}: {total.total()} equations of {len(total)} primitives"
    tables: list[Table] = [("primitives", ("primitive", "equations", "of them inside others", "plugin"), rows)]
    print_tables(shown(summary), tables if rows else [])


def _as_json(name: str, program: ClosedJaxpr) -> dict[str, Any]:
    total, _ = count_primitives(program)
    return {
        "format": "corejax-jaxpr",
        "version": JSON_VERSION,
        "function": name,
        "arguments": [aval.str_short() for aval in program.in_avals],
        "results": [aval.str_short() for aval in program.out_avals],
        "constants": [v.aval.str_short() for v in program.jaxpr.constvars],
        "effects": sorted(program.effects),
        "primitives": {p.name: n for p, n in sorted(total.items(), key=lambda item: item[0].name)},
        "text": program.pretty(),
    }
