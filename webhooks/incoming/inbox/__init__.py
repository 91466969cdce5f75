"""The inbox for people: what came, what was refused, and having either looked at again."""
