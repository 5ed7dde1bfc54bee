"""The files that put Surefoot in front of a kube-scheduler, for a site's resources and addresses.

`surefoot render-config` prints them; those under deploy/ are what it prints for the defaults.
"""
