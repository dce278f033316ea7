"""The command `corejax`: what is installed, who contributed what, and what is missing."""

from corejax.cli.group import main as main
