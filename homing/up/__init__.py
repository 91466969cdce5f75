"""The fleet on one machine."""
