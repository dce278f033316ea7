"""Arrays of keys: their primitives, and the functions that create and convert keys."""
