"""Settings, caches, and the limit on memory."""
