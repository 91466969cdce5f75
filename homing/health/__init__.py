"""How the process and the fleet are doing: ``/healthz``, ``/readyz``, ``/fleetz``."""
