"""Every undocumented name of py4j, the bridge to the JVM, that Kardia uses; nothing else of the project names one.

Checked on `CHECKED_ON`; tests/spark_jobs/test_private_names.py says which of them an upgrade has broken.
"""

from __future__ import annotations

import logging
from pathlib import Path

CHECKED_ON = "0.10.9.9"
"""Version of the package py4j, which pyspark pins."""

LOGGERS = ("py4j", "py4j.clientserver", "py4j.java_gateway")
"""Names of its loggers. Each is switched off by itself: what is off for a logger is not off for its children."""


def silence() -> None:
    """Drop from here on what py4j says of a JVM that is going."""
    for name in LOGGERS:
        logging.getLogger(name).disabled = True
    logging.getLogger().addFilter(_not_of_py4j)  # it says some of it in nobody's name


def _not_of_py4j(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"
