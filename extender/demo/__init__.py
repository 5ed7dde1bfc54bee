"""A simulated day of GPU faults, scheduled twice: with Surefoot and without (docs/demo.md)."""
