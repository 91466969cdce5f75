"""How long from a fault until the work it interrupted is done: ``python -m benchmarks.rescue`` writes the page.

A real fleet by ``homing up``. Whatever is killed is caught in the act where that can be told from outside: the provider
(or the receiver) holds the very request, and the process at its other end gets SIGKILL. Done means that this job is
home, or this delivery, file or event where it was going; that other work goes on is not enough.
"""
