"""The health of GPUs: which causes are open, and what state they make."""
