"""The primitives of linear algebra, each with its rules in a file of its own; all of them take stacks of matrices."""
