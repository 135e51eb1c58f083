"""Questions that verbs ask of `Answers`: groups, members, and the rows that a story is told from. Bounded reads."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from datetime import UTC, tzinfo
from typing import Any
from urllib.parse import quote

from api.access.ids import to_segment
from cli.asking.answers import NOT_KNOWN, Answers, Params, QuestionError
from kardia.story import Material, words
from kardia.tables import END_CAUSES

ROWS_MAX = 1_000
"""Rows of one kind that a story is told from, the latest; the API's longest page."""

PAGES_MAX = 50
"""Pages of groups or members that are read for a list: 50,000 of them."""

LIVES_MAX = 20
"""Member ids of one client.id that are shown, the latest."""

CANDIDATES_MAX = 5

HOUR_MS = 3_600_000
"""What people look at after an alert."""


class Questions:
    """Questions about one cluster."""

    def __init__(self, answers: Answers, cluster: str | None, zone: tzinfo = UTC) -> None:
        self._answers = answers
        self.zone = zone
        """Of times that name none."""
        self.cluster_id = self._only_cluster() if cluster is None else cluster
        self._root = f"/api/v1/clusters/{_segment(self.cluster_id)}"

    def freshness(self, group_id: str | None = None) -> dict[str, Any]:
        """How far the tables reach for this cluster, or for a group of it: by the logs of the broker that leads it."""
        about = self._cluster() if group_id is None else self._answers.get(self._of(group_id))
        found: dict[str, Any] = about["freshness"]
        return found

    def reached_ms(self, group_id: str | None = None) -> int:
        """The instant up to which the tables are complete; what is relative is relative to it."""
        found: int | None = self._freshness_or_cluster(group_id)["complete_as_of_ms"]
        if found is None:
            raise QuestionError(
                f"{self._answers.where} holds nothing yet, so there is nothing to count back from; expected an instant "
                "with its day; wait for the first batch, or name one."
            )
        return found

    def _freshness_or_cluster(self, group_id: str | None) -> dict[str, Any]:
        """A group that is not there is refused by what asks about it, with those that are meant."""
        try:
            return self.freshness(group_id)
        except QuestionError as error:
            if error.code != "not_found":
                raise
            return self.freshness()

    def require_known(self, option: str, at_ms: int, group_id: str | None = None) -> None:
        """Raise QuestionError where an option names an instant that has not been read up to, as the API does."""
        reached_ms = self._freshness_or_cluster(group_id)["complete_as_of_ms"]
        if reached_ms is not None and at_ms > reached_ms:
            raise QuestionError(
                f"{self._answers.where}: Nothing is known beyond {words.instant(reached_ms)}; {option} is "
                f"{words.instant(at_ms)}; expected an instant that is not after it; ask again when more has been read.",
                NOT_KNOWN,
                "beyond_complete",
            )

    def groups(
        self, search: str | None, state: str | None, rows_max: int, sort: str = "worst"
    ) -> tuple[list[dict[str, Any]], bool]:
        """Groups, the worst first or in another order of the API, and whether there are more."""
        params: Params = {"sort": sort}
        if search is not None:
            params["search"] = search
        if state is not None:
            params["state"] = state
        return self._all(f"{self._root}/groups", "groups", params, rows_max)

    def group(self, group_id: str) -> dict[str, Any]:
        """One group as it stands."""
        try:
            found: dict[str, Any] = self._answers.get(self._of(group_id))["group"]
        except QuestionError as error:
            raise self._not_found(error, group_id) from None
        return found

    def protocols(self, group_id: str) -> list[str]:
        """What a group speaks; nothing of one that is known by its commits alone, or is gone."""
        try:
            return list(self.group(group_id)["protocols"])
        except QuestionError:
            return []

    def evidence(self, group_id: str) -> dict[str, Any]:
        """What is read of the broker of a group, and which questions that answers."""
        found: dict[str, Any] = self._answers.get(self._of(group_id))["evidence"]
        return found

    def history(
        self, group_id: str, from_ms: int | None, to_ms: int | None, entity: str | None, rows_max: int
    ) -> tuple[list[dict[str, Any]], bool]:
        """Transitions of a group, the latest first, and whether there are more."""
        self.group(group_id)
        params = _times(from_ms, to_ms)
        if entity is not None:
            params["entity"] = entity
        return self._all(f"{self._of(group_id)}/history", "transitions", params, rows_max)

    def rejected(
        self, from_ms: int | None, to_ms: int | None, reason: str | None, rows_max: int
    ) -> tuple[list[dict[str, Any]], bool]:
        """Lines that could not be understood, the latest first, and whether there are more."""
        params = _times(from_ms, to_ms)
        if reason is not None:
            params["reason"] = reason
        return self._all(f"{self._root}/rejected", "rejected", params, rows_max)

    def disagreements(
        self, group_id: str | None, from_ms: int | None, to_ms: int | None, kind: str | None, rows_max: int
    ) -> tuple[list[dict[str, Any]], bool]:
        """Lines of server.log that say otherwise than the requests, the latest first, and whether there are more."""
        params = _times(from_ms, to_ms)
        if kind is not None:
            params["kind"] = kind
        if group_id is None:
            return self._all(f"{self._root}/disagreements", "disagreements", params, rows_max)
        self.group(group_id)
        return self._all(f"{self._of(group_id)}/disagreements", "disagreements", params, rows_max)

    def surprises(
        self, group_id: str | None, from_ms: int | None, to_ms: int | None, surprise_class: str | None, rows_max: int
    ) -> tuple[list[dict[str, Any]], bool]:
        """Answers that are not as the model predicts, the latest first, and whether there are more."""
        params = _times(from_ms, to_ms)
        if surprise_class is not None:
            params["surprise_class"] = surprise_class
        if group_id is None:
            return self._all(f"{self._root}/surprises", "surprises", params, rows_max)
        self.group(group_id)
        return self._all(f"{self._of(group_id)}/surprises", "surprises", params, rows_max)

    def self_test(self) -> dict[str, Any]:
        """The cluster, with what its self-test counted."""
        found: dict[str, Any] = self._answers.get(self._root, {})["cluster"]
        return found

    def _disagreements(self, path: str, params: Params, rows_max: int) -> tuple[list[dict[str, Any]], bool]:
        """The same for a story; none where the tables are of a version that had no such table."""
        try:
            return self._all(path, "disagreements", params, rows_max)
        except QuestionError as error:
            if error.code != "tables_missing":
                raise
            return [], False

    def lag(self, rows_max: int) -> dict[str, Any]:
        """Lag of all groups, the worst first."""
        return self._answers.get(f"{self._root}/lag", {"limit": min(ROWS_MAX, rows_max)})

    def lag_of(self, group_id: str, rows_max: int) -> dict[str, Any]:
        """Lag of a group by partition."""
        try:
            return self._answers.get(f"{self._of(group_id)}/lag", {"limit": min(ROWS_MAX, rows_max)})
        except QuestionError as error:
            raise self._not_found(error, group_id) from None

    def incident(self, group_id: str, from_ms: int | None, to_ms: int | None) -> dict[str, Any]:
        """Incident report of a group."""
        self.group(group_id)
        return self._answers.get(f"{self._of(group_id)}/incident", _times(from_ms, to_ms))

    def incidents(self, from_ms: int | None, to_ms: int | None) -> dict[str, Any]:
        """What all groups went through, the worst first. Of tables that are still written the last hour, where no begin
        is given; of an archive all of it."""
        freshness = self.freshness()
        reached_ms = freshness["complete_as_of_ms"]
        if from_ms is None and not _is_archive(freshness) and reached_ms is not None:
            from_ms = max(0, (reached_ms if to_ms is None else to_ms) - HOUR_MS)
        return self._answers.get(f"{self._root}/incidents", _times(from_ms, to_ms) | {"limit": ROWS_MAX})

    def gone_through(self) -> dict[str, dict[str, Any]] | None:
        """What each group of an archive went through, by its id; None of tables that are still written, and where there
        is more than one answer may read."""
        if not _is_archive(self.freshness()):
            return None
        try:
            return {one["group_id"]: one for one in self.incidents(None, None)["incidents"]}
        except QuestionError as error:
            if error.code != "range_too_wide":
                raise
            return None

    def members(self, group_id: str, rows_max: int = PAGES_MAX * ROWS_MAX) -> tuple[list[dict[str, Any]], bool]:
        """Present members of a group, and whether there are more."""
        return self._all(f"{self._of(group_id)}/members", "members", {}, rows_max)

    def lives(self, group_id: str, member: str) -> list[dict[str, Any]]:
        """Lives of the member ids that a word means: an id, a client.id or a static id; the latest first."""
        self.group(group_id)
        try:
            found: list[dict[str, Any]] = self._answers.get(f"{self._of(group_id)}/members/{_segment(member)}")["lives"]
        except QuestionError as error:
            if error.code != "not_found":
                raise
        else:
            return found
        rows = sorted(self._lives(group_id)[0], key=lambda row: int(row["joined_at_ms"]), reverse=True)
        known = ((row["member_id"], row["client_id"], row["group_instance_id"]) for row in rows)
        meant = set(words.meant(member, known))
        if not meant:
            raise self._no_member(group_id, member, rows)
        hrefs = list(dict.fromkeys(row["href"] for row in rows if row["member_id"] in meant))[:LIVES_MAX]
        return [life for href in hrefs for life in self._answers.get(href)["lives"]]

    def material(self, group_id: str, at_ms: int | None, to_ms: int | None, *, events: bool) -> Material:
        """Everything that a story of a group is told from, the latest `ROWS_MAX` rows of each kind."""
        group = self.group(group_id)
        cluster = self._cluster()
        freshness = self.freshness(group_id)
        until_ms = to_ms if at_ms is None else at_ms + 1
        path = self._of(group_id)
        bound: Params = {"limit": ROWS_MAX}
        about: Params = {"limit": ROWS_MAX}
        reached_ms = freshness["complete_as_of_ms"]
        if until_ms is None and freshness["stale"] and reached_ms is not None:
            # Such a story ends with what is complete; the latest samples may be younger, and say nothing of then.
            about = about | {"at": reached_ms}
        elif until_ms is not None:
            bound = bound | {"to": until_ms}
            # A story may end later than what is known, and then says so; `--at` is refused by the API itself.
            about = about | {
                "at": until_ms - 1 if at_ms is not None or reached_ms is None else min(until_ms - 1, reached_ms)
            }
        with_events: Params = {"events": "true"} if events else {}
        transitions, more_transitions = self._page(f"{path}/history", "transitions", bound | with_events)
        rebalances, more_rebalances = self._page(f"{path}/rebalances", "rebalances", bound)
        predictions, more_predictions = self._page(f"{path}/predictions", "predictions", bound)
        lives, ended_cut_ms = self._lives(group_id)
        health = self._answers.get(f"{path}/health", about)["health"]
        cuts = [
            min(int(row[column]) for row in rows)
            for rows, more, column in (
                (transitions, more_transitions, "at_ms"),
                (rebalances, more_rebalances, "started_at_ms"),
                (predictions, more_predictions, "predicted_at_ms"),
            )
            if more and rows
        ]
        if ended_cut_ms is not None:
            cuts.append(ended_cut_ms)
        differing = self._disagreements(f"{path}/disagreements", _times(None, until_ms), ROWS_MAX)[0]
        return Material(
            group["cluster_id"],
            group["group_id"],
            _ascending(transitions, "seq"),
            _ascending(rebalances, "started_at_ms"),
            _ascending(lives, "joined_at_ms"),
            _ascending(predictions, "predicted_at_ms"),
            tuple(health),
            freshness["complete_as_of_ms"],
            freshness["answered_at_ms"],
            freshness["stale"],
            max(cuts, default=None),
            cluster["ledger"]["gaps"],
            _ascending(differing, "at_ms"),
            rejected=cluster["ledger"]["rejected"],
        )

    def no_member(self, material: Material, member: str) -> QuestionError:
        """What to say when a story is asked for somebody who is not in it."""
        return self._no_member(material.group_id, member, material.lives)

    def _lives(self, group_id: str) -> tuple[list[dict[str, Any]], int | None]:
        """Ended memberships and all present ones; and before which instant ends were not read, if there are more."""
        ended, more = self._page(
            f"{self._of(group_id)}/evictions", "evictions", {"limit": ROWS_MAX, "cause": list(END_CAUSES)}
        )
        present, _ = self.members(group_id)
        return ended + present, min(int(row["ended_at_ms"]) for row in ended) if more else None

    def _cluster(self) -> dict[str, Any]:
        found: dict[str, Any] = self._answers.get(self._root)["cluster"]
        return found

    def _of(self, group_id: str) -> str:
        return f"{self._root}/groups/{_segment(group_id)}"

    def _page(self, path: str, key: str, params: Params) -> tuple[list[dict[str, Any]], bool]:
        found = self._answers.get(path, params)
        return found[key], found["next_cursor"] is not None

    def _all(self, path: str, key: str, params: Params, rows_max: int) -> tuple[list[dict[str, Any]], bool]:
        rows: list[dict[str, Any]] = []
        more = False
        pages = self._pages(path, key, params | {"limit": min(ROWS_MAX, rows_max)})
        while len(rows) < rows_max:
            page, more = next(pages, ([], False))
            rows += page
            if not more:
                break
        return rows[:rows_max], more or len(rows) > rows_max

    def _pages(self, path: str, key: str, params: Params) -> Iterator[tuple[list[dict[str, Any]], bool]]:
        for _ in range(PAGES_MAX):
            found = self._answers.get(path, params)
            cursor = found["next_cursor"]
            yield found[key], cursor is not None
            if cursor is None:
                return
            params = params | {"cursor": cursor}

    def _only_cluster(self) -> str:
        names = [row["cluster_id"] for row in self._answers.get("/api/v1/clusters")["clusters"]]
        if len(names) == 1:
            return str(names[0])
        if not names:
            raise QuestionError(
                f"{self._answers.where} knows no cluster yet; expected the first batch of `kardia stream` or "
                "`kardia replay`; wait for it, or name another place."
            )
        listed = words.listing([words.name(one) for one in names])
        raise QuestionError(f"{self._answers.where} knows {listed}; expected one of them; name it with --cluster.", 2)

    def _not_found(self, error: QuestionError, group_id: str) -> QuestionError:
        if error.code != "not_found":
            return error
        self._cluster()
        rows, _ = self.groups(None, None, ROWS_MAX)
        near = _near(group_id, [row["group_id"] for row in rows])
        return QuestionError(
            f"{self._answers.where}: cluster {words.name(self.cluster_id)} has no group {words.name(group_id)}; "
            f"{_expected(near, 'no group at all')}; `kardia groups` lists all."
        )

    def _no_member(self, group_id: str, member: str, lives: Any) -> QuestionError:
        known = [life[column] for life in lives for column in ("client_id", "member_id") if life[column]]
        near = _near(member, list(dict.fromkeys(known)))
        return QuestionError(
            f"{self._answers.where}: group {words.name(group_id)} has no member {words.name(member)}; expected a "
            f"member id, a client.id or a static id, {_expected(near, 'of which there is none')}; "
            f"`kardia group` lists its members."
        )


def _is_archive(freshness: dict[str, Any]) -> bool:
    """Whether nobody writes these tables any more: a job that is down for a while comes back sooner."""
    return bool(freshness["stale"]) and (freshness["age_ms"] or 0) > HOUR_MS


def _times(from_ms: int | None, to_ms: int | None) -> Params:
    return {name: at_ms for name, at_ms in (("from", from_ms), ("to", to_ms)) if at_ms is not None}


def _segment(text: str) -> str:
    # An id that is plain stands as it is; everything else is base64url, which needs no quoting.
    return quote(to_segment(text), safe="~")


def _near(word: str, known: list[str]) -> list[str]:
    return difflib.get_close_matches(word, known[:ROWS_MAX], CANDIDATES_MAX, 0.5) or known[:CANDIDATES_MAX]


def _expected(near: list[str], otherwise: str) -> str:
    return "expected one such as " + words.listing([words.name(one) for one in near]) if near else otherwise


def _ascending(rows: list[dict[str, Any]], column: str) -> tuple[dict[str, Any], ...]:
    return tuple(sorted(rows, key=lambda row: int(row[column])))
