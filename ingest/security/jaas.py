"""`sasl.jaas.config`: one login module with its options, `CLASS required NAME="VALUE" …;`, read and written.

Follows `org.apache.kafka.common.security.JaasConfig`, whose words are those of `java.io.StreamTokenizer`. The text is a
secret as a whole: what is wrong with it is said without any of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

FLAGS = ("required", "requisite", "sufficient", "optional")

_WORD = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/)|(?P<mark>[=;])
    |"(?P<double>(?:[^"\\\n]|\\.)*)"|'(?P<single>(?:[^'\\\n]|\\.)*)'|(?P<bare>[^\s=;"']+)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:([0-3]?[0-7]{1,2})|(.))", re.DOTALL)
_LETTERS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class JaasError(ValueError):
    """The text is not one login module; the message says why and quotes nothing."""


@dataclass(frozen=True)
class Login:
    """A login module."""

    module: str
    options: dict[str, str] = field(repr=False)

    @property
    def name(self) -> str:
        """The class without its package."""
        return self.module.rpartition(".")[2]


def parse(text: str) -> Login:
    """The one login module of a text."""
    words = _words(text)
    if len(words) < 3 or any(mark for mark, _ in words[:2]):
        raise JaasError("it does not begin with a class and a flag such as required")
    module, flag = words[0][1], words[1][1]
    if flag.lower() not in FLAGS:
        raise JaasError(f"behind the class there is none of {', '.join(FLAGS)}")
    options: dict[str, str] = {}
    at = 2
    while at < len(words) and words[at] != (True, ";"):
        if len(words) < at + 3 or words[at][0] or words[at + 1] != (True, "=") or words[at + 2][0]:
            raise JaasError("an option is not NAME=VALUE; a value with other than letters and digits needs quotes")
        name = words[at][1]
        if name in options:
            raise JaasError("an option is given twice")
        options[name] = words[at + 2][1]
        at += 3
    if at == len(words):
        raise JaasError("it does not end with a semicolon")
    if at + 1 < len(words):
        raise JaasError("there is more behind the semicolon; one login module is expected")
    return Login(module, options)


def _words(text: str) -> list[tuple[bool, str]]:
    """Words, and whether each is a mark."""
    words: list[tuple[bool, str]] = []
    at = 0
    while at < len(text):
        found = _WORD.match(text, at)
        if found is None:
            raise JaasError("a quote is not closed")
        at = found.end()
        if found["mark"]:
            words.append((True, found["mark"]))
        elif found["bare"]:
            words.append((False, found["bare"]))
        elif found["skip"] is None:
            words.append((False, _unescaped(found["double"] if found["double"] is not None else found["single"])))
    return words


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda found: chr(int(found[1], 8)) if found[1] else _LETTERS.get(found[2], found[2]), text)


_HIDDEN = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"}


def written(module: str, options: dict[str, str]) -> str:
    """The text of a login module."""
    pairs = (f'{name}="{"".join(_HIDDEN.get(char, char) for char in value)}"' for name, value in options.items())
    return " ".join([module, "required", *pairs]) + ";"
