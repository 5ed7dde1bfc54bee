"""The harness itself: what it promises to the tests beside it."""
