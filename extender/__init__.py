"""The shell of Surefoot: one external system per subpackage, thin, around the pure `scoring`."""
