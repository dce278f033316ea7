"""A module inside the namespace."""


class Thing:
    """Has one identity, under whichever name it is imported."""
