"""`python -m corejax.cli`."""

from corejax.cli.group import main

main(prog_name="corejax")
