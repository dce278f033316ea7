"""Collectives: what the elements along a named axis do together. One file for each kind."""
