"""Makes a `Trace` of its text. Reads line by line with the tables of `language`; runs nothing and evaluates nothing.

A line is a title, a header (`Kafka`, `Broker`, `Member`, `Log`, `Coordinator only because`), a step (`+SECONDS ...`), a
continuation (`=> ...`), a comment (`# ...`) or blank. Anything else is a `TraceError` that names file, line and
what was expected.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Any

from kardia.coordinator.classic.settings import CoordinatorSettings
from kardia.kafka.releases import version_of
from kardia.kafka.states import ErrorCode
from kardia.trace import language as lang
from kardia.trace.language import Act, Expectation, LogFault, Step, Trace, TraceError

STEP = re.compile(
    rf"(?P<at>{lang.INSTANT})(?: to (?P<to>{lang.INSTANT}) every (?P<every>\d+\.\d{{3}}))?"
    r"(?P<before> before timers)?(?:\s+(?P<act>\S.*))?$"
)
DURATION = re.compile(r"(\d+)(ms|s|min|h)")
UNITS_MS = {"ms": 1, "s": 1_000, "min": 60_000, "h": 3_600_000}
CLAUSES = {kind: re.compile(clause.pattern) for kind, clause in lang.CLAUSES.items()}
STEPS_MAX = 10_000
"""Steps of one trace after `every` is written out; a longer one is a mistake."""


def read(text: str, name: str = "trace") -> Trace:
    """Read a whole trace; `name` stands in messages. Raises TraceError."""
    return _Reader(name).read(text)


def instant_ms(text: str) -> int:
    """Milliseconds of `+12.345`."""
    return int(text.lstrip("+").replace(".", ""))


def duration_ms(text: str) -> int:
    """Milliseconds of `500ms`, `10s`, `5min` or `1h`. Raises ValueError for anything else."""
    found = DURATION.fullmatch(text)
    if found is None:
        raise ValueError(text)
    return int(found[1]) * UNITS_MS[found[2]]


class _Reader:
    def __init__(self, name: str) -> None:
        self.name = name
        self.line = 0
        self.title: list[str] = []
        self.versions: tuple[str, ...] = ()
        self.settings = CoordinatorSettings()
        self.members: dict[str, dict[str, str]] = {}
        self.coordinator_only = ""
        self.log_faults: list[LogFault] = []
        self.steps: list[Step] = []
        self.same_line = 0
        """How many of the last steps belong to the last step line: `every` makes many of one."""

    def wrong(self, found: str, expected: str) -> TraceError:
        return TraceError(self.name, self.line, found, expected)

    def read(self, text: str) -> Trace:
        for self.line, raw in enumerate(text.splitlines(), 1):
            content, _, comment = raw.partition("#")
            content, mark = content.strip(), comment.strip() if comment.strip() in lang.MARKS else ""
            if not content:
                continue
            if content.startswith("+"):
                self.step(content, mark)
            elif content.startswith("=>"):
                self.expect(content, mark)
            elif self.steps:
                raise self.wrong(repr(content), "a step such as `+1.000 a joins`, or `=> ...`")
            elif not self.header(content):
                if self.versions:
                    raise self.wrong(
                        repr(content), "`Kafka`, `Broker`, `Member`, `Log`, `Coordinator only because` or a step"
                    )
                self.title.append(content)
        if not self.title:
            raise TraceError(self.name, 1, "no title", "a first line of prose that says what the trace shows")
        if not self.steps:
            raise self.wrong("no step", "a line such as `+0.000 a joins => a waits`")
        steps = tuple(sorted(self.steps, key=lambda step: step.at_ms))
        title = " ".join(self.title)
        return Trace(
            self.name,
            title,
            self.versions,
            self.settings,
            self.members,
            self.coordinator_only,
            tuple(self.log_faults),
            steps,
        )

    # --- header

    def header(self, content: str) -> bool:
        if content.startswith("Kafka "):
            self.versions = tuple(re.split(r",\s*", content.removeprefix("Kafka ").strip()))
            for version in self.versions:
                try:
                    version_of(version)
                except ValueError as error:
                    raise self.wrong(f"release {version!r}", "releases such as `3.9.2, 4.4.0`") from error
        elif content.startswith("Broker "):
            self.broker(content.removeprefix("Broker "))
        elif found := re.fullmatch(rf"Member (?P<name>{lang.NAME}):(?P<options>.*)", content):
            if found["name"] in (lang.ADMIN, lang.COORDINATOR, "none"):
                raise self.wrong(f"member {found['name']!r}", "another name; this one has a meaning of its own")
            self.members[found["name"]] = self.options(found["options"].split())
        elif content.startswith("Log "):
            self.log(content.removeprefix("Log "))
        elif content.startswith("Coordinator only because "):
            self.coordinator_only = content.removeprefix("Coordinator only because ")
        else:
            return False
        return True

    def broker(self, content: str) -> None:
        for word in content.split():
            key, _, value = word.partition("=")
            if key not in lang.SETTINGS or not value.isdigit():
                raise self.wrong(f"{word!r}", f"PROPERTY=NUMBER with one of {', '.join(lang.SETTINGS)}")
            field, factor = lang.SETTINGS[key]
            given: dict[str, Any] = {field: int(value) * factor}
            self.settings = self.settings._replace(**given)

    def log(self, content: str) -> None:
        for kind, clause in lang.LOG_FAULTS.items():
            if found := re.fullmatch(clause.pattern, content):
                given = found.groupdict()
                from_ms, to_ms = (instant_ms(given[name]) if given.get(name) else -1 for name in ("from", "to"))
                self.log_faults.append(LogFault(kind, from_ms, to_ms, int(given.get("late") or 0)))
                return
        raise self.wrong(repr(content), f"one of: {'; '.join(one.form for one in lang.LOG_FAULTS.values())}")

    def options(self, words: list[str]) -> dict[str, str]:
        options = {}
        for word in words:
            key, _, value = word.partition("=")
            if key not in lang.OPTIONS or not value:
                raise self.wrong(
                    f"{word!r}", f"NAME=VALUE with one of {', '.join(lang.OPTIONS)}{_near(key, lang.OPTIONS)}"
                )
            kind = lang.OPTIONS[key].partition(":")[0]
            right = DURATION.fullmatch(value) if kind == "duration" else value.isdigit() if kind == "number" else True
            if not right:
                raise self.wrong(
                    f"{word!r}", "a duration such as 500ms, 10s, 5min" if kind == "duration" else "a number"
                )
            options[key] = value
        return options

    # --- steps

    def step(self, content: str, mark: str) -> None:
        if not self.versions:
            raise self.wrong("a step", "a line `Kafka VERSION, ...` before the first step")
        left, arrow, right = content.partition("=>")
        found = STEP.fullmatch(left.strip())
        if found is None:
            raise self.wrong(
                repr(left.strip()), "`+SECONDS.MMM [to +SECONDS.MMM every SECONDS.MMM] [before timers] [ACT]`"
            )
        acts = self.acts(found["act"]) if found["act"] else ()
        first_ms = instant_ms(found["at"])
        last_ms = instant_ms(found["to"]) if found["to"] else first_ms
        every_ms = instant_ms(found["every"]) if found["every"] else 1
        if last_ms < first_ms or every_ms < 1 or (last_ms - first_ms) / every_ms > STEPS_MAX:
            raise self.wrong(f"{found['at']} to {found['to']}", f"an end after the begin and at most {STEPS_MAX} steps")
        if not found["to"] and self.steps and first_ms < self.steps[-self.same_line].at_ms:
            raise self.wrong(found["at"], "an instant not before that of the line above")
        instants = range(first_ms, last_ms + 1, every_ms)
        text = found["act"] or ""
        self.steps += [Step(self.line, at_ms, bool(found["before"]), acts, text, ()) for at_ms in instants]
        self.same_line = len(instants)
        if arrow:
            self.expect(arrow + right, mark)

    def acts(self, text: str) -> tuple[Act, ...]:
        found = re.match(rf"(?P<names>{lang.NAMES}) (?P<rest>.+)", text)
        if found is None:
            raise self.wrong(repr(text), "`NAME VERB`, for example `a joins`")
        names = tuple(found["names"].split(" and "))
        for name in names:
            if name not in self.members and name not in (lang.ADMIN, lang.COORDINATOR):
                raise self.wrong(f"{name!r}", f"a declared member{_near(name, self.members)}")
        rest = found["rest"]
        verb = next((verb for verb in lang.VERBS if rest.startswith((verb, _plural(verb)))), None)
        if verb is None:
            raise self.wrong(repr(rest), f"one of {', '.join(lang.VERBS)}{_near(rest.split()[0], lang.VERBS)}")
        rest = rest.removeprefix(verb if rest.startswith(verb) else _plural(verb)).strip()
        return tuple(self.act(name, verb, rest) for name in names)

    def act(self, name: str, verb: str, rest: str) -> Act:
        own = lang.OWNERS.get(verb)
        if own != (name if name in (lang.ADMIN, lang.COORDINATOR) else None):
            raise self.wrong(f"`{name} {verb}`", f"`{own or 'MEMBER'} {verb}`")
        reason = re.search(r'because "([^"]*)"', rest)
        if reason is not None:
            rest = rest.replace(reason[0], "").strip()
        whom: tuple[str, ...] = ()
        if verb == "removes":
            if not re.fullmatch(lang.NAMES, rest):
                raise self.wrong(repr(rest), "names of members, for example `admin removes a and b`")
            whom, rest = tuple(rest.split(" and ")), ""
        as_leader, transaction = "as leader" in rest, "in a transaction" in rest
        words = rest.replace("as leader", "").replace("in a transaction", "").split()
        unanswered = lang.UNANSWERED in words
        options = self.options([word for word in words if word != lang.UNANSWERED])
        return Act(name, verb, options, reason[1] if reason else "", whom, unanswered, as_leader, transaction)

    # --- expectations

    def expect(self, content: str, mark: str) -> None:
        if not self.steps:
            raise self.wrong("`=>`", "a step before it")
        text = content.removeprefix("=>").strip()
        versions = self.versions
        if found := re.match(r"on ([^:]+): ", text):
            wanted = re.split(r",\s*", found[1])
            versions = tuple(one for one in self.versions if any(_matches(one, pattern) for pattern in wanted))
            if not all(any(_matches(one, pattern) for one in self.versions) for pattern in wanted):
                raise self.wrong(f"`on {found[1]}`", f"releases of this trace: {', '.join(self.versions)}, 3.x or 4.x")
            text = text[found.end() :]
        clauses = tuple(self.clause(part, versions, mark) for part in re.split(r",\s*", text))
        for place in range(-self.same_line, 0):
            step = self.steps[place]
            self.steps[place] = step._replace(expectations=step.expectations + clauses)

    def clause(self, text: str, versions: tuple[str, ...], mark: str) -> Expectation:
        for kind, pattern in CLAUSES.items():
            found = pattern.fullmatch(text)
            if found is None:
                continue
            given = found.groupdict()
            names = tuple((given.get("names") or "").split(" and ")) if given.get("names") else ()
            for name in names:
                if name not in self.members and (kind, name) != ("answered", lang.ADMIN):
                    raise self.wrong(f"{name!r}", f"a declared member{_near(name, self.members)}")
            value, more = given.get("value") or "", (given.get("more") or "").strip()
            if kind == "answered" and more and ErrorCode.__members__.get(more) != int(value):
                raise self.wrong(f"{value} {more}", f"the name of code {value}, {_error_name(value)}")
            return Expectation(kind, names, value, more, text, versions, mark)
        raise self.wrong(repr(text), f"one of: {'; '.join(clause.form for clause in lang.CLAUSES.values())}")


def _plural(verb: str) -> str:
    """What several do: `a and b join`."""
    first, _, rest = verb.partition(" ")
    return f"{first[:-1]} {rest}".strip()


def _matches(version: str, pattern: str) -> bool:
    return version == pattern or (pattern.endswith(".x") and version.startswith(pattern[:-1]))


def _near(word: str, known: Any) -> str:
    near = get_close_matches(word, list(known), 1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _error_name(value: str) -> str:
    try:
        return ErrorCode(int(value)).name
    except ValueError:
        return "which the coordinator does not use"
