"""Result files: fetched, judged, kept, and read."""
