"""`corejax as-jax`: run a program with corejax under the name jax, or scan a library for names that are missing."""

from __future__ import annotations

import os
import sys

import click

from corejax_as_jax.version import PATH


@click.command("as-jax", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--path", "show_path", is_flag=True, help="Print the directory to put on PYTHONPATH.")
@click.option("--scan", metavar="LIBRARY", multiple=True, help="List the names of jax that a library uses and lacks.")
@click.argument("program", nargs=-1, type=click.UNPROCESSED)
def as_jax(show_path: bool, scan: tuple[str, ...], program: tuple[str, ...]) -> None:
    """Run a program that is written for JAX on corejax.

    PROGRAM is what follows `python` on a command line: a file or -m module, and arguments. The program and the
    processes that it starts get corejax under the name jax.

    \b
    Examples
      corejax as-jax -- train.py --steps 100
      corejax as-jax -- -m pytest tests
      corejax as-jax --scan equinox
      PYTHONPATH=$(corejax as-jax --path) python train.py

    \b
    Exit codes
      0  nothing is missing; of a program, its own
      1  a scanned library uses names that are missing
      2  wrong usage: no such library, or nothing to do
    """
    if show_path:
        click.echo(PATH)
    elif scan:
        from corejax_as_jax.scanning import print_scan

        sys.exit(print_scan(scan))
    elif program:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(PATH), os.getenv("PYTHONPATH")]))}
        os.execve(sys.executable, [sys.executable, *program], environment)
    else:
        raise click.UsageError("give a program, --scan or --path")
