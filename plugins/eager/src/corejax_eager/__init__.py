"""The engine that makes eager calls and repeated rules fast; see `engine`."""
