"""`surefoot inspect`: read one input that a machine printed, and say what Surefoot makes of it."""
