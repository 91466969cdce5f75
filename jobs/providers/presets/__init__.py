"""Descriptions of providers that are shipped, one TOML file each."""
