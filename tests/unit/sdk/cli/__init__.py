"""The command line, against a broker that is made up."""
