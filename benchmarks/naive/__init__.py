"""The same work done the way most tutorials do it: Flask, the ORM, and one Celery message per event.

A yardstick, not a straw man: signatures are checked, events are stored before they are acknowledged, each is applied
once, with a history row and an outbox row in one transaction.
"""
