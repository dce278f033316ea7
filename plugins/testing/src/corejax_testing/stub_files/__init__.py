"""Stubs for type checkers and editors: what plugins add to `corejax`, written from signatures and docstrings.

`rendering` writes one name, `types_by_name` fills in types that annotations leave open, `fragments` writes the files of
one plugin, and `facade` the files that join them, in the kernel's directory. docs/publishing.md says where they lie.
"""
