"""The extender itself: Flask on gunicorn, answering kube-scheduler from one immutable picture."""
