"""A toy plugin."""
