"""One file per sweep: a frozen configuration with ``run_once(runtime, premise) -> Counts``."""
