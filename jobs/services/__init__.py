"""Use cases: load, decide, write, in one short transaction each."""
