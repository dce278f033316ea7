"""The text of programs: names of variables, types, literals, parameters and equations, as `Jaxpr.pretty` writes them.

It is for plugins that show programs in another form or parse their text; names may change in any version.
"""

from corejax.extend._chapters import chapter as _chapter

__getattr__, __dir__, __all__ = _chapter(__name__)
