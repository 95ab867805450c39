"""A client for a Slipway server: ``Slipway(url, token)``."""

from . import schema
from .client import Slipway
from .error import SlipwayError, Validation

__all__ = ["Slipway", "SlipwayError", "Validation", "schema"]
