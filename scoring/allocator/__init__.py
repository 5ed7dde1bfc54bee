"""Which sets of GPUs the kubelet may hand out on a node with NVIDIA's stock device plugin.

`pairs` is what the plugin sees of a machine, `best_effort` its policy for whole GPUs, `aligned` the
kubelet's NUMA filter before it, `shares` the plugin's choice for shared GPUs and MIG devices, and
`reach` the answer about a node.
"""
