"""A command of the plugin's own."""

import click


@click.command("toy-hello")
def hello() -> None:
    """Greet."""
    click.echo("hello from toy_ops")
