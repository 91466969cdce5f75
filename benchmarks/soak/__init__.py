"""A fleet under a steady, mixed load for as long as it takes: what grows that should not?

``python -m benchmarks.soak --hours 1`` starts ``homing up --embedded`` against a simulator that misbehaves, presses it
like a few busy customers, writes a sample as a JSON line every 30 s, and judges the second half at the end.
"""
