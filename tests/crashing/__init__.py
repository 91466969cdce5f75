"""The crash harness: a whole fleet under load, killed between every commit and every network call, and audited.

``python -m tests.crashing`` (``make crash-proof``) is the command, ``docs/proof/crash.md`` what it writes.

The product knows nothing of it. ``plugin`` is an ordinary plugin that a fleet's TOML file names; imported in a
process of the fleet it wraps the few doors through which every commit and every call leaves (``doors``), and each
passage is a point with a name. The harness (``run``) arms points through a folder (``control``); whoever reaches an
armed one kills itself there.
"""
