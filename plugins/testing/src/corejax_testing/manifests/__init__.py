"""Manifests of plugins: written from the code (`corejax write-manifest`), and checked against it (`corejax verify`).

`describing` makes a manifest of what a loaded plugin put into the tables, `files` writes and compares it, `check` is
the check of `verify`. The format, and how the kernel reads it, are `corejax.extend.plugins.manifest`.
"""
