"""Generators: what makes keys of seeds, keys of keys, and random bits of a key."""
