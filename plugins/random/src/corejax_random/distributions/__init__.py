"""Distributions: numbers drawn with a key."""
