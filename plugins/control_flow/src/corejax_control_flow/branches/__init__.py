"""Conditionals: `cond` and `switch`."""
