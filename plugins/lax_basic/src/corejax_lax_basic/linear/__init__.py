"""Products that contract axes: dot_general and the products defined in terms of it, ragged_dot, scaled_dot."""
