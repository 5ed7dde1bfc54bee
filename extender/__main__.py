"""`python -m extender`, for the image: the same as `surefoot`."""

from extender.cli import main

main(prog_name="surefoot")
