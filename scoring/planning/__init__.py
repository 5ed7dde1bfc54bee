"""Which node for which member of which gang: order, whole-gang plans, and why there is none.

Pure like the rest of `scoring`. `planner.plan` is the way in; docs/gangs.md tells it to people.
"""
