"""Settings, and caches that follow them."""
