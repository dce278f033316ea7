"""Programs from text: `parser` has the grammar, `reader` reads types and values, `scalars` reads numbers bit by bit."""

from corejax_explain.program_text.parser import parse_jaxpr as parse_jaxpr
