"""Answers to questions about groups, from a running API or straight from a table directory: one interface, two bodies.

The interface is the REST API itself. `HttpAnswers` asks a server; `TableAnswers` asks the same application in this
process, over the store of the `api` package, without a socket. So both give the same answers, bounds and errors, and
no verb knows which of the two it has.
"""

from __future__ import annotations

import asyncio
import time
from types import TracebackType
from typing import Any, Protocol, Self

import httpx

from kardia.story import words
from stores.locations import Folder

TIMEOUT_S = 30.0
"""The server gives a read of its files 10 s and lets some wait; twice that and a little."""

LOOK_S = 0.5
"""How long a look at the tables is good for: the pages of one question should be of one moment, and cost one look."""

Params = dict[str, str | int | list[str]]


NOT_KNOWN = 3
"""Exit status where nobody can tell: an instant that has not been read yet, or a verdict without evidence."""


class QuestionError(Exception):
    """A question that has no answer: one sentence for the person who asked, and the exit status."""

    def __init__(self, sentence: str, status: int = 1, code: str = "") -> None:
        super().__init__(sentence)
        self.status = status
        self.code = code
        """Stable code of the API's problem, if it was one."""


class Answers(Protocol):
    """Where answers come from."""

    where: str
    """The table directory or the address, for messages."""

    def get(self, path: str, params: Params | None = None) -> dict[str, Any]:
        """JSON of an answer of the API; QuestionError if it has none."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class HttpAnswers:
    """A running `kardia serve`."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self.where = words.name(url, 200)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            # No proxy and no .netrc from the environment: a token goes to the address that was named, nowhere else.
            self._client = httpx.Client(base_url=url, headers=headers, timeout=TIMEOUT_S, trust_env=False)
        except (httpx.InvalidURL, ValueError) as error:
            raise _bad_url(url) from error
        if self._client.base_url.scheme not in ("http", "https") or not self._client.base_url.host:
            self._client.close()
            raise _bad_url(url)

    def get(self, path: str, params: Params | None = None) -> dict[str, Any]:
        """Ask over HTTP."""
        try:
            reply = self._client.get(path, params=params)
        except httpx.TimeoutException:
            raise QuestionError(
                f"{self.where} did not answer within {TIMEOUT_S:.0f} s; expected an answer of `kardia serve`; ask for "
                "a narrower time, or look into the server's log."
            ) from None
        except httpx.InvalidURL:
            raise _too_long() from None
        except httpx.HTTPError as error:
            raise QuestionError(
                f"{self.where} cannot be asked ({words.escaped(str(error) or type(error).__name__)}); expected a "
                "running `kardia serve`; start one, name its address with --api, or name a directory with --tables."
            ) from None
        return _answer(self.where, reply)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()


class TableAnswers:
    """A table directory, read by the application of `kardia serve` inside this process."""

    def __init__(self, tables: Folder) -> None:
        # A question to a server needs none of this, and is answered two seconds of a slow machine sooner.
        from api.app import create_app
        from api.settings import ApiSettings

        self.where = words.name(str(tables), 200)
        # What the environment says about a server's address and tokens is not for this one: it has neither.
        settings = ApiSettings.model_construct(tables=tables)
        self._app = create_app(settings, lambda: time.time_ns() // 1_000_000)
        self._store = self._app.state.context.store
        self._look_at = 0.0
        self._loop = asyncio.new_event_loop()
        self._client = httpx.AsyncClient(
            transport=httpx.ASGITransport(self._app, raise_app_exceptions=False), base_url="http://127.0.0.1"
        )

    def get(self, path: str, params: Params | None = None) -> dict[str, Any]:
        """Look at the tables if the last look is not of this moment, and ask."""
        if time.monotonic() >= self._look_at:
            self._store.refresh()
            self._look_at = time.monotonic() + LOOK_S
        try:
            return _answer(self.where, self._loop.run_until_complete(self._client.get(path, params=params)))
        except httpx.InvalidURL:
            raise _too_long() from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.run_until_complete(self._client.aclose())
        self._app.state.context.close()
        self._loop.close()


def _answer(where: str, reply: httpx.Response) -> dict[str, Any]:
    try:
        found = reply.json()
    except ValueError:
        found = None
    if not isinstance(found, dict) or (reply.status_code != 200 and "detail" not in found):
        raise QuestionError(
            f"{where} gave an answer (status {reply.status_code}) that is none of Kardia's; expected `kardia serve`; "
            "check the address."
        )
    if reply.status_code == 200:
        return found
    hint = " Name a file with a token: --token-file." if reply.status_code == 401 else ""
    code = str(found.get("code", ""))
    status = NOT_KNOWN if code == "beyond_complete" else 1
    raise QuestionError(f"{where}: {words.escaped(str(found['detail']))}{hint}", status, code)


def _bad_url(url: str) -> QuestionError:
    return QuestionError(
        f"--api {words.quoted(url)} is no address; expected one such as http://127.0.0.1:8765, where `kardia serve` "
        "listens.",
        2,
    )


def _too_long() -> QuestionError:
    return QuestionError(
        "the ids are too long together for one address of the API (65,536 characters); expected shorter ones; name the "
        "member by its client.id, or ask about its group."
    )
