"""The one public, versioned module for authors of primitives, rules, transformations and plugins.

First-party plugins use nothing else of the kernel. `__init__.pyi` is the table of contents, by section; what fewer
authors need is in chapters of their own:

- `extend.programs`: programs as data, rules of primitives with programs in their parameters.
- `extend.transforms`: traces, tangents, batches and named axes, for transformations.
- `extend.types`: symbolic sizes, elements that are made of numbers, refinements of types.
- `extend.devices`: what backends are made of; memory, checks of values.
- `extend.plugins`: what plugins export, and what a kit checks them with.
- `extend.commands`: tables and errors of commands, and the states of rules.
- `extend.messages`: errors and warnings, the user's line, caches, blocks that are left clean.
- `extend.speed`, `extend.printing`: for an engine and for what shows programs; their names may change in any version.

Sequences of operands, tangents and results are flat lists or tuples; avals are `ShapedArray`s; `None` is the zero
tangent or cotangent, and the batching dimension of what is not mapped.

Versions. The surface (names, signatures, public attributes of classes, hooks with their arguments, rule kinds) is
frozen in `tests/packaging/extend_surface.txt`; a test prints what differs. What may change, and when:

- Names, optional arguments, hooks, hook arguments and attributes are added in any minor version of corejax. A plugin
  that needs one asks for that version: `corejax>=0.2`.
- A name is removed or renamed only after two minor versions in which using it gives a `CorejaxDeprecationWarning` that
  names the replacement. Arguments are not renamed or removed: a function whose arguments change gets a new name.
- `API_VERSION` counts what neither of these can carry: a rule signature or a hook that means something else. A plugin
  declares the one that it was made for (hook `corejax_declare_api_version`) and is refused by any other.
"""

from corejax.extend._chapters import chapter as _chapter
from corejax.interpreters import looping as _looping  # registers a derivation, which may be needed
from corejax.interpreters import transposition as _transposition  # and so do this one and what it imports

__getattr__, __dir__, __all__ = _chapter(__name__)
