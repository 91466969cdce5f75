"""Everything that time drives."""
