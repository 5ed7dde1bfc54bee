"""What goes wrong when a process wants to listen: the same for every server of ours."""

from __future__ import annotations


class BindError(Exception):
    """The address cannot be had: another process listens there, or it is not this machine's."""
