"""The one public, versioned module for authors of primitives, rules, transformations and plugins.

First-party plugins use nothing else of the kernel. `__init__.pyi` is the table of contents, by section. Names that
fewer authors need are in chapters:

- `extend.programs`: programs as data, rules of primitives with programs in their parameters.
- `extend.transforms`: traces, tangents, batches and named axes, for transformations.
- `extend.types`: symbolic sizes, extended dtypes, refinements of types.
- `extend.devices`: parts of backends, memory, checks of values.
- `extend.plugins`: exports of plugins, and functions for kits that check plugins.
- `extend.commands`: tables and errors of commands, and the status of rules.
- `extend.messages`: errors and warnings, the user's line, caches, temporary changes.
- `extend.speed`, `extend.printing`: for engines and for printers of programs; their names may change in any version.

Sequences of operands, tangents and results are flat lists or tuples; avals are `ShapedArray`s; `None` is the zero
tangent or cotangent, and the batching dimension of a value that is not mapped.

Versions. The surface (names, signatures, public attributes of classes, hooks with their arguments, rule kinds) is
frozen in `tests/packaging/extend_surface.txt`; a test prints differences. The rules for changes:

- Names, optional arguments, hooks, hook arguments and attributes are added in any minor version of corejax. A plugin
  that needs one requires that version: `corejax>=0.2`.
- A name is removed or renamed only after two minor versions in which a use raises a `CorejaxDeprecationWarning` that
  names the replacement. Arguments are not renamed or removed; a function with changed arguments gets a new name.
- `API_VERSION` counts all other changes: a rule signature or a hook gets another meaning. A plugin declares the version
  that it was made for (hook `corejax_declare_api_version`); every other version refuses it.
"""

from corejax.extend._chapters import chapter as _chapter

__getattr__, __dir__, __all__ = _chapter(__name__)
