"""The world's HTTP callbacks."""
