"""`homing doctor`: looks at database, Redis and processes itself, and says what is wrong and what to do."""
