"""Generators, which derive keys from seeds, keys from keys, and random bits from a key."""
