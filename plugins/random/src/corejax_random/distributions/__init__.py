"""Distributions: functions that draw numbers with a key."""
