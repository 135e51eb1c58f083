"""Starts the Java machine of this process with one release's locked jars, and the small classes it needs made up.

One process runs one release: a Java machine cannot be started twice. Logging libraries stay out of the class path, so
Kafka's log lines cost nothing. Made-up member ids are the caller's: `Ids` replaces the source behind `java.util.UUID`.
"""

from __future__ import annotations

import uuid
from functools import cache
from pathlib import Path
from typing import Any

import jpype

from spark_jobs.jvm import jars, java
from tests.truth.oracle.settings import EVERY_VERSION

_JAR_SETS = {version: f"coordinator-{version}" for version in EVERY_VERSION} | {
    # Brokers that the demo starts; what runs here is in them.
    version: f"broker-{version}"
    for version in ("2.3.1", "2.7.2", "3.9.2", "4.4.0")
}

_LOGGING = ("log4j", "reload4j", "slf4j-reload4j", "slf4j-log4j12")
"""Prefixes of jars that would make slf4j write; without them it is silent."""

_OPTIONS = (
    "-Xmx768m",
    "-XX:+UseSerialGC",
    # The fields behind java.util.UUID and its random source.
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    "--add-opens=java.base/java.security=ALL-UNNAMED",
)

_SHORT = "-XX:TieredStopAtLevel=1"
"""For a run of a minute or a few: what the slower compiler would gain, it would first have to cost."""

_started: list[str] = []


def start(version: str, *, lasts: bool = False) -> None:
    """Start the machine for a release, or do nothing if it runs that release already. `lasts`: for many minutes."""
    if _started:
        if _started[0] != version:
            raise RuntimeError(f"this process runs the classes of Kafka {_started[0]}; {version} needs its own process")
        return
    paths = [
        path
        for name in (_JAR_SETS[version], "byte-buddy")
        for path in jars.ensure(name)
        if not path.name.startswith(_LOGGING)
    ]
    options = _OPTIONS if lasts else (*_OPTIONS, _SHORT)
    jpype.startJVM(*options, jvmpath=str(_library()), classpath=[str(path) for path in paths], convertStrings=False)
    _started.append(version)
    # slf4j says once that it found no logging library, and Kafka's registries say what they made.
    silent = jpype.JClass("java.io.PrintStream")(jpype.JClass("java.io.OutputStream").nullOutputStream())
    jpype.java.lang.System.setErr(silent)


def _library() -> Path:
    runtime = java.find()
    probed = java.probe(runtime.path)
    home = probed[1] if probed else runtime.home
    for pattern in ("lib/server/libjvm.*", "lib/libjvm.*"):
        for found in sorted(home.glob(pattern)):
            return found
    raise RuntimeError(f"the Java runtime in {home} has no libjvm to load; install a full Java 17 or newer runtime")


@cache
def jclass(name: str) -> Any:
    """A Java class by its full name. Raises TypeError when there is none."""
    return jpype.JClass(name)


def either(*names: str) -> Any:
    """The first of these classes that the release has."""
    for name in names:
        try:
            return jclass(name)
        except TypeError:
            continue
    raise LookupError(f"none of {names} is in this release")


def field(owner: Any, name: str) -> Any:
    """A field of a class, readable whatever its visibility; `.get(object)` reads it."""
    # By name through Java: to JPype an anonymous class is its parent.
    found = (jpype.java.lang.Class.forName(owner) if isinstance(owner, str) else owner).getDeclaredField(name)
    found.setAccessible(True)
    return found


def each(collection: Any) -> Any:
    """The elements of a Java collection, in one call: to step through it takes three for each of them."""
    return collection.toArray()


class MadeUp:
    """A class made at run time: methods of a parent or of an interface, each passed on to an object's method."""

    def __init__(self, parent: str) -> None:
        """`parent`: a class to extend or an interface to implement."""
        self._matchers = jclass("net.bytebuddy.matcher.ElementMatchers")
        self._call = jclass("net.bytebuddy.implementation.MethodCall")
        given = jclass(parent).class_
        self._builder = jclass("net.bytebuddy.ByteBuddy")().subclass(given)

    def passes(self, method: str, target: Any, target_type: str, target_method: str, *arguments: int) -> MadeUp:
        """Calls of `method` go to `target_method` of `target`, with the arguments at these positions."""
        kind = jclass(target_type).class_
        found = next(
            m
            for m in kind.getMethods()
            if str(m.getName()) == target_method and m.getParameterCount() == len(arguments)
        )
        call = self._call.invoke(found).on(target, kind)
        if arguments:
            call = call.withArgument(*arguments)
        typing = jclass("net.bytebuddy.implementation.bytecode.assign.Assigner$Typing").DYNAMIC
        assigner = jclass("net.bytebuddy.implementation.bytecode.assign.Assigner").DEFAULT
        call = call.withAssigner(assigner, typing)
        self._builder = self._builder.method(self._matchers.named(method)).intercept(call)
        return self

    def returns(self, method: str, value: Any) -> MadeUp:
        """Calls of `method` are answered with one value."""
        # Held by a reference: ByteBuddy asks what it holds for a hash, which a half-made object cannot give.
        reference = "java.util.concurrent.atomic.AtomicReference"
        return self.passes(method, jclass(reference)(value), reference, "get")

    def make(self) -> Any:
        """One object of the class, made without running a constructor."""
        loader = jclass("java.lang.ClassLoader").getSystemClassLoader()
        made = self._builder.make().load(loader).getLoaded()
        return jclass("org.objenesis.ObjenesisStd")(True).newInstance(made)


class Ids:
    """The member ids that the coordinator will make up: their UUIDs come from here."""

    def __init__(self) -> None:
        """Take the place of the random source of `java.util.UUID`."""
        self._next: list[bytes] = []
        self._spare = 0
        consumer = jpype.JProxy("java.util.function.Consumer", dict={"accept": self._fill})
        source = (
            MadeUp("java.security.SecureRandomSpi")
            .passes("engineNextBytes", consumer, "java.util.function.Consumer", "accept", 0)
            .make()
        )
        generator = field("java.util.UUID$Holder", "numberGenerator").get(None)
        field("java.security.SecureRandom", "secureRandomSpi").set(generator, source)

    def will_be(self, member_id: str) -> None:
        """The next id made up ends like this one."""
        self._next = [uuid.UUID(member_id[-36:]).bytes]

    def _fill(self, target: Any) -> None:
        if self._next:
            given = self._next.pop()
        else:  # nobody looks at it: an id of the machinery, such as a producer's
            self._spare += 1
            given = self._spare.to_bytes(len(target), "big")
        target[:] = [byte - 256 if byte > 127 else byte for byte in given]
