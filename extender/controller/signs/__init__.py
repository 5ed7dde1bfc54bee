"""The leader's signs to the outside: to pods that wait, to people, and to whatever else reads nodes.

What is to be said is decided by `scoring`; here it is said, at a bounded pace, and never twice. A sign
that cannot be given is counted and stops nothing.
"""
