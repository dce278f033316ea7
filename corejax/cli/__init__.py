"""The command `corejax`: it lists plugins, their primitives and rules, and missing rules."""

from corejax.cli.group import main as main
