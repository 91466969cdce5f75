"""A job told live: who follows it, what they are told, and from which place on."""
