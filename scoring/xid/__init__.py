"""NVIDIA's XID and SXID codes: what one means, and what the events of an incident mean together."""
