"""A fleet's API, seen from outside: where it is, and how to ask it."""
