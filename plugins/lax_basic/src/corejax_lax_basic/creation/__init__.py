"""Arrays from values and shapes: filled with one value, with their index along an axis, or from nested sequences."""
