"""Loops: `scan`, `while_loop`, `fori_loop`, `map`, and the progress bars of loops."""
