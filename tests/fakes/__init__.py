"""Stand-ins for what lies across the network, each held to its port by ``tests/contract``."""
