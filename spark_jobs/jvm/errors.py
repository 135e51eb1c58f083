"""The one error of this folder. Its text is a sentence for a person: what, where, what was expected, what to do."""

from __future__ import annotations


class JvmError(RuntimeError):
    """Java or a jar file cannot be had; the message says what to do next."""
