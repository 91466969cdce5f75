"""Processes that were stopped and forgotten (SIGSTOP, a debugger that went away): they live, and do nothing."""
