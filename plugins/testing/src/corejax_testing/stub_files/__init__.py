"""Write stubs for type checkers and editors from the signatures and docstrings of plugins.

`rendering` writes one name, `types_by_name` fills in types that annotations leave open, `fragments` writes the files of
one plugin, and `facade` the files that join them, in the kernel's directory. docs/publishing.md explains their layout.
"""
