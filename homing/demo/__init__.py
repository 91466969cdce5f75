"""`homing demo`: a whole fleet, a provider that misbehaves, and a proof that every job came home once."""
