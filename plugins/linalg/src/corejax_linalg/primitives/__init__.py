"""The primitives of linear algebra, which take stacks of matrices; each file has primitives with their rules."""
