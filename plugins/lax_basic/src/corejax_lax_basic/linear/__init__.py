"""Products that contract axes: dot_general, and what is said in terms of it."""
