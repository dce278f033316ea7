"""Arrays made of nothing: filled with one value, or with their indices."""
