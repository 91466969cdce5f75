"""Real services for the suite: programs of this machine or of a wheel, each in a folder of its own."""
