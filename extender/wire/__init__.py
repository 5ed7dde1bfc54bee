"""What kube-scheduler says and hears: its JSON, its pods, and the `Ask` that a pod comes down to.

`scheduler` decodes requests and encodes answers, `pods` holds the fields of a Pod that matter,
`asks` turns a Pod into an `Ask`, `quantities` reads resource quantities. No I/O and no judgement.
"""
