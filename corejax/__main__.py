"""`python -m corejax`: the command."""

from corejax.cli.group import main

main(prog_name="corejax")
