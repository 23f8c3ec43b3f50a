"""The two ways in which a certificate is not accepted."""


class Refused(Exception):
    """The certificate claims what does not hold."""


class NotCovered(Exception):
    """The certificate, or the network, uses what this version of the format does not cover: nothing is said about it."""
