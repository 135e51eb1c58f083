"""Kafka's own coordinator in virtual time: operations go in, answers and views come out.

The classes come from locked jars and run inside this process through JPype; there is no broker, no socket and no real
clock. Nothing here knows how a coordinator decides: that is what it is asked about.
"""

from tests.truth.oracle.driver import Oracle
from tests.truth.oracle.settings import EVERY_VERSION, VERSIONS

__all__ = ["EVERY_VERSION", "VERSIONS", "Oracle"]
