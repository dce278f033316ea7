"""Detection of keys that are used twice."""
