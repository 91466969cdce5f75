"""Celery tasks of jobs: thin, each loads by id and calls one service."""
