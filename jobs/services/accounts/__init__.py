"""Accounts at providers: what may be asked of one, how fast, and what it costs."""
