"""`corejax hlo`: the StableHLO of a function, its optimised HLO, and its costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from corejax.extend.devices import bytes_text
from corejax.extend.messages import shown
from corejax_explain.commands import FunctionCall, takes_function


@takes_function("hlo")
@click.option("--dialect", type=click.Choice(["stablehlo", "hlo"]), default="stablehlo", help="Before optimisation.")
@click.option("--debug-info", is_flag=True, help="StableHLO with the names of operations and the user's lines.")
@click.option("--optimized", is_flag=True, help="Compile the function, and print the optimised HLO.")
@click.option("--cost", "costs", is_flag=True, help="XLA's estimates for one run; with --optimized, of optimised HLO.")
@click.option("--memory", is_flag=True, help="Compile the function, and print the bytes that a run takes.")
@click.option("--collectives", is_flag=True, help="Compile the function, and list the collectives of a run.")
@click.option("--platform", type=click.Choice(["cpu", "cuda"]), help="Lower for a platform; no device is needed.")
def hlo(
    call: FunctionCall,
    dialect: str,
    debug_info: bool,
    optimized: bool,
    costs: bool,
    memory: bool,
    collectives: bool,
    platform: str | None,
) -> None:
    """Print the StableHLO of a function.

    The function is traced on types of arguments, and not run. A TYPE is written as jaxprs print it, f32[3,4] or i32[];
    pytrees as in Python, {"w": f32[3,3]} or (f32[3], i32[]); n=f32[3] is a keyword argument. An argument without a
    type in it, 3 or "relu", is static. A function that is jitted already keeps its own options.

    \b
    Examples
      corejax hlo corejax.numpy:dot --args "f32[3,4]" "f32[4]"
      corejax hlo model.py:loss --args '{"w": f32[3,3]}, f32[8,3]' --transform grad --optimized
      corejax hlo model.py:step --args '{"w": f32[3,3]}, f32[8,3]' --memory
      corejax hlo model.py:sharded_step --args '{"w": f32[8,8]}, f32[8,8]' --collectives

    \b
    Exit codes
      0  success
      1  the module failed while it was imported, or the function while it was traced, lowered or compiled
      2  wrong usage: no such module or function, or an invalid type
    """
    if debug_info and (optimized or dialect == "hlo"):
        raise click.UsageError("--debug-info needs StableHLO: leave out --optimized and --dialect hlo")
    traced = call.run(lambda: _traced(call))
    platforms = None if platform is None else (platform,)
    lowered = call.run(lambda: traced.lower(lowering_platforms=platforms), "while it was lowered")
    if optimized or memory or collectives:
        compiled = call.run(lowered.compile, "while it was compiled")
    if costs:
        source = compiled if optimized else lowered
        _print_numbers(call.run(source.cost_analysis, "while its costs were estimated"), lambda n: f"{n:,.0f}")
    if memory:
        _print_numbers(compiled.memory_analysis(), bytes_text)
    if collectives:
        from corejax_xla_backend.collectives import collectives as collectives_of

        click.echo(shown(str(collectives_of(compiled))))
    if costs or memory or collectives:
        return
    text = compiled.as_text() if optimized else call.run(lambda: lowered.as_text(dialect, debug_info=debug_info))
    click.echo(shown(text.rstrip("\n")))


def _traced(call: FunctionCall) -> Any:
    """Return the traced function; a jitted function without a transformation is traced with its own options."""
    from corejax_xla_backend._jit.jit import jit

    if call.untouched is not None:
        fun, kwargs = call.untouched
        if hasattr(fun, "lower") and hasattr(fun, "trace"):
            return fun.trace(*call.args, **kwargs)
    return jit(call.fun, static_argnums=call.static_argnums).trace(*call.args, **call.kwargs)


def _print_numbers(numbers: Mapping[str, Any], text: Any) -> None:
    """Print names and numbers in aligned columns."""
    rows = [(name, text(number)) for name, number in sorted(numbers.items())]
    width = max((len(name) for name, _ in rows), default=0)
    for name, number in rows:
        click.echo(shown(f"{name.ljust(width)}  {number}"))
