"""`python -m homing.cli`: the command line where the `homing` script is not on PATH."""

from homing.cli import main

main()
