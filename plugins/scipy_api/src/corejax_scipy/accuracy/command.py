"""`corejax accuracy`: how far special functions are off."""

from __future__ import annotations

import json

import click


@click.command()
@click.argument("functions", metavar="[NAMES]...", nargs=-1)
@click.option("--dtype", "dtypes", type=click.Choice(["float32", "float64"]), multiple=True, help="By default both.")
@click.option("--points", "count", type=click.IntRange(10, 10**7), default=20_000, help="How many, over the domain.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", help="For eyes or for pipes.")
def accuracy(functions: tuple[str, ...], dtypes: tuple[str, ...], count: int, form: str) -> None:
    """Print the errors of special functions, run and compiled, in units in the last place.

    NAMES are primitives of corejax.scipy.special (erfcx, complex_gamma), by default all of them. Points lie over the
    whole domain; what they are compared with is scipy.special in float64, which has errors of its own there.

    \b
    Examples
      corejax accuracy erfcx ndtri
      corejax accuracy --dtype float32 --format json

    \b
    Exit codes
      0  they are printed
      2  wrong usage: no such function
    """
    from corejax_scipy.accuracy.measure import measure, names

    known = names()
    for name in functions:
        if name not in known:
            raise click.UsageError(f"there is no function {name!r} to measure; there are {', '.join(known)}")
    rows = [
        measure(name, dtype, mode, count)
        for name in functions or known
        for dtype in dtypes or ("float32", "float64")
        for mode in ("run", "compiled")
    ]
    if form == "json":
        click.echo(json.dumps([{**row._asdict(), "where": [str(x) for x in row.where]} for row in rows], indent=1))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    for column in ("function", "dtype", "mode"):
        table.add_column(column, no_wrap=True)
    for column in ("median", "most (ulp)", "lost"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("at", no_wrap=True)
    for row in rows:
        at = ", ".join(f"{x:.6g}" for x in row.where)
        table.add_row(row.function, row.dtype, row.mode, f"{row.median:.2f}", f"{row.most:,.2f}", str(row.lost), at)
    Console(width=max(Console().width, 140)).print(table, soft_wrap=True)
