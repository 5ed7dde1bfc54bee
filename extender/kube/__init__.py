"""The Kubernetes API server: how to reach it, and a reflector that follows one kind of objects."""
