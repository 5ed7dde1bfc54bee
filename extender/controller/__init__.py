"""The controller: what the API server knows of pods and nodes, mirrored into the cache."""
