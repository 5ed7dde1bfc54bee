"""The judgement of Surefoot as values and functions: no I/O, no clock, no randomness, no logging.

Time and randomness are arguments, what happened is returned. The shell around it is `extender`.
"""
