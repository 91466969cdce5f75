"""Pure decisions. Nothing here imports I/O, a clock, randomness or a framework."""
