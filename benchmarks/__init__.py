"""Our figures beside their yardsticks, measured in the same run: ``make bench``.

A figure alone says more about the machine than about the product, so every benchmark measures the thing and
something known next to it, turn by turn, and reports medians, ranges and the ratio of the two.
"""
