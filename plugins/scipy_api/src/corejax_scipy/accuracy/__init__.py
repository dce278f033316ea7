"""How accurate special functions are: measured over their whole domains, and printed by a command."""
