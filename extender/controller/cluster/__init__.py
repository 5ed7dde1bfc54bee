"""What the leading controller keeps in memory of the API server's objects.

Reflectors' threads write it, the planning loop reads it. Of each pod only what counts is kept: what
it holds of its node, and more where it is in a gang, is nominated, was refused or failed.
"""
