"""Manifests of plugins: written from the code (`corejax write-manifest`), and checked against it (`corejax verify`).

`describing` makes the manifest of a loaded plugin, `files` writes and compares manifests, and `check` is the check of
`verify`. The module `corejax.extend.plugins.manifest` defines the format and reads it.
"""
