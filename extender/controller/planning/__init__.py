"""The leader's plans: made when they are due, written to the cache, and carried out on the pods."""
