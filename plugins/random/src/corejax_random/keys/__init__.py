"""Arrays of keys: their primitives, and the functions that make and take them."""
