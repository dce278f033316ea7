"""Programs from text: `parser` has the grammar, `reader` parses types and values, `scalars` exact numbers."""

from corejax_explain.program_text.parser import parse_jaxpr as parse_jaxpr
