"""The configuration: one YAML file, every field by environment variable too, errors that help."""
