"""`corejax accuracy`: measure errors of special functions."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import click

from corejax.extend.messages import did_you_mean


@click.command()
@click.argument("functions", metavar="[NAMES]...", nargs=-1)
@click.option(
    "--dtype", "dtypes", type=click.Choice(["float32", "float64"]), multiple=True, help="The dtypes; by default both."
)
@click.option("--points", "count", type=click.IntRange(10, 10**7), help="The number of points: 20,000, or 60 at ends.")
@click.option("--ends", is_flag=True, help="Measure relative errors at the ends of domains, against mpmath.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", help="The output format.")
def accuracy(functions: tuple[str, ...], dtypes: tuple[str, ...], count: int | None, ends: bool, form: str) -> None:
    """Print the errors of special functions, run and compiled, in units in the last place.

    NAMES are primitives of corejax.scipy.special (erfcx, complex_gamma), by default all of them. Points cover the whole
    domain. The reference is scipy.special in float64, which has errors of its own.

    With --ends, NAMES are functions of corejax.scipy.special and distributions (gammainc, chi2.cdf). Operands are tiny,
    huge, equal or close to whole numbers, and each function has a bound. This requires mpmath, and takes minutes for
    all functions.

    \b
    Examples
      corejax accuracy erfcx ndtri
      corejax accuracy --dtype float32 --format json
      corejax accuracy --ends gammainc chi2.cdf

    \b
    Exit codes
      0  the errors are printed
      1  an error exceeds its bound (--ends)
      2  wrong usage: unknown function
    """
    measure, known = _at_ends() if ends else _over_domains()
    for name in functions:
        if name not in known:
            hint = did_you_mean(name, known) or f"; the functions are {', '.join(known)}"
            raise click.UsageError(f"there is no function {name!r} to measure{hint}")
    rows = [
        measure(name, dtype, mode, count or (60 if ends else 20_000))
        for name in functions or known
        for dtype in dtypes or ("float32", "float64")
        for mode in ("run", "compiled")
    ]
    _print(rows, form, ends)
    if ends and any(row.worst > row.bound for row in rows):
        raise SystemExit(1)


def _over_domains() -> tuple[Any, Iterable[str]]:
    from corejax_scipy.accuracy.measure import measure, names

    return measure, names()


def _at_ends() -> tuple[Any, Iterable[str]]:
    try:
        from corejax_scipy.accuracy.ends import TABLE, measure
    except ModuleNotFoundError as error:
        if error.name != "mpmath":
            raise
        raise click.UsageError("--ends compares with mpmath, which is not installed: pip install mpmath") from None
    return measure, sorted(TABLE)


def _print(rows: list[Any], form: str, ends: bool) -> None:
    if form == "json":
        click.echo(json.dumps([{**row._asdict(), "where": [str(x) for x in row.where]} for row in rows], indent=1))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    for column in ("function", "dtype", "mode"):
        table.add_column(column, no_wrap=True)
    numbers = ("points", "worst", "bound") if ends else ("median", "most (ulp)", "lost")
    for column in numbers:
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("at", no_wrap=True)
    for row in rows:
        at = ", ".join(f"{x:.6g}" for x in row.where)
        if ends:
            cells = (str(row.count), f"{row.worst:.1e}", f"{row.bound:.0e}", f"{at}  {row.why}".rstrip())
        else:
            cells = (f"{row.median:.2f}", f"{row.most:,.2f}", str(row.lost), at)
        table.add_row(row.function, row.dtype, row.mode, *cells)
    Console(width=max(Console().width, 140)).print(table, soft_wrap=True)
