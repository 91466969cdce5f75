"""One file per provider, behind one port."""
