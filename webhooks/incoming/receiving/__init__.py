"""From the wire to a committed row: nothing here waits for a worker."""
