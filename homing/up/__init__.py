"""The fleet on one machine: every process of Homing, restarted when it dies.

``homing.up.options.FleetOptions`` says what is wanted, ``homing.up.run.run_fleet`` is the command,
``homing.up.fleet.Fleet`` the fleet itself, for whoever needs one in a program.
"""
