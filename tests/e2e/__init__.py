"""End to end: Surefoot in front of a real kube-scheduler, in a real control plane on this machine."""
