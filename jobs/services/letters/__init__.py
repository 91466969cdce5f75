"""Dead letters: looked at, redriven one by one or many at once, and noticed where too many come."""
