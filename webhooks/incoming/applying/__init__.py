"""From a stored event to its job: claimed by workers, in batches."""
