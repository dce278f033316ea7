"""Many elements made one, or combined with all that go before them: reduce, cumulative, associative_scan."""
