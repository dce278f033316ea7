"""Translations of the primitives of value types."""
