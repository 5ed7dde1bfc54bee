"""From pods to gangs, and from plans to the writes that carry them out.

Pure like the rest of `scoring`: who is in which gang (`gathering`), what is to be written next
(`steps`), and what the cache keeps of each gang (`record`). docs/gangs.md tells it to people.
"""
