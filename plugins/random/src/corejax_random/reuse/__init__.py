"""What finds keys that are used twice."""
