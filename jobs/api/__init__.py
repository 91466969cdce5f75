"""The HTTP edge of jobs: parse, call one service, answer. No SQL and no rules live here."""
