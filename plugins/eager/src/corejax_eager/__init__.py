"""The engine that speeds up eager calls and repeated rules; see `engine`."""
