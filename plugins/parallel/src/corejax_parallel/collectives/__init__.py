"""Collectives: operations across the elements of a named axis, a file for each kind."""
