"""`corejax new-plugin NAME`: a complete distribution to start from."""

from __future__ import annotations

import pkgutil
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import click

import corejax
from corejax.extend.plugins import plugin_records
from corejax_testing.scaffolding.names import KINDS, LICENSES, Plan


@click.command("new-plugin")
@click.argument("name")
@click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    metavar="DIR",
    help="The parent of the distribution's directory; by default the current directory.",
)
@click.option(
    "--kind", type=click.Choice([*KINDS]), default="elementwise", show_default=True, help="The kind of example."
)
@click.option("--namespace", metavar="NS", help="The plugin's namespace, corejax.NS; by default the plugin's name.")
@click.option("--primitive", metavar="FUNC", help="The name of the function; the primitive is called NAME.FUNC.")
@click.option("--license", type=click.Choice([*LICENSES]), default="apache-2.0", show_default=True, help="The licence.")
@click.option("--author", metavar="AUTHOR", help="'Name' or 'Name <mail>'.")
def new_plugin(name: str, directory: Path, **options: Any) -> None:
    """Write a distribution with one primitive: rules, tests, README, workflow, licence, manifest.

    The distribution is called corejax-NAME and is written to a new directory of that name. It can be installed, and its
    tests pass.

    \b
    Kinds
      elementwise   a formula with a derivative, a vmap rule and a translation
      higher-order  a function as a parameter, with a rule of every kind
      impl-only     a NumPy function and its type; the kernel derives the rest

    Exit codes: 0; 1 if the directory exists and is not empty; 2 for an invalid name.
    """
    from corejax.extend.commands import say
    from corejax_testing.scaffolding.first_manifest import write_manifest
    from corejax_testing.scaffolding.writing import write

    try:
        plan = Plan.of(name, options.pop("namespace"), _taken_names(), function=options.pop("primitive"), **options)
        target = directory / plan.distribution
        written = write(plan, _kernel_version(), target)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    except OSError as error:
        raise click.ClickException(str(error)) from None
    for path in written:
        say(f"wrote {path}")
    try:
        say(f"wrote {write_manifest(plan, target)}")
        later = ""
    except ValueError as error:
        say(f"corejax: no manifest was written: {error}", err=True)
        later = f"  corejax write-manifest {plan.plugin}\n"
    steps = f"  cd {target}\n  pip install -e '.[test]'\n{later}  corejax write-stubs {plan.plugin}\n  pytest\n"
    say(f"\nNext:\n{steps}  corejax list-primitives --plugin {plan.plugin}")


def _taken_names() -> dict[str, str]:
    """Return the names of the facade that are taken, each with its owner."""
    kernel = {module.name for module in pkgutil.iter_modules(corejax.__path__)} | set(dir(corejax))
    offered = {name: f"plugin {record.name}" for record in plugin_records() for name in record.offers}
    return {**dict.fromkeys(kernel, "the kernel"), **offered}


def _kernel_version() -> str:
    try:
        return version("corejax")
    except PackageNotFoundError:  # corejax runs from its sources
        return "0.1"
