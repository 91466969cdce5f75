"""Sending a job to its provider, so that nothing is ever paid for twice."""
