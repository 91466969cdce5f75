"""What an operator may choose: the only readers of the environment and of ``homing.toml``."""
