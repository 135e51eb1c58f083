"""The demo's webhook receiver keeps messages in their order and refuses what is none."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from demo import receiver
from demo.receiver import Receiver

HOSTILE = 'a/"b"\n\u202e{{ .x }}'


def post(url: str, content: bytes) -> int:
    return httpx.post(url, content=content, trust_env=False, timeout=60).status_code


def test_it_keeps_what_is_posted_and_when(tmp_path: Path) -> None:
    log = tmp_path / "new" / "received.jsonl"
    with Receiver(log) as running:
        assert post(f"{running.url}/a", json.dumps({"group": HOSTILE}).encode()) == 200
        assert post(f"{running.url}/b", b"[1]") == 200
        assert [(message.path, message.body) for message in running.messages] == [
            ("/a", {"group": HOSTILE}),
            ("/b", [1]),
        ]
        first, second = running.messages
        assert first.at_ms <= second.at_ms
    kept = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(one["at_ms"], one["path"], one["body"]) for one in kept] == [
        (message.at_ms, message.path, message.body) for message in (first, second)
    ]
    with pytest.raises(httpx.ConnectError):
        post(f"{running.url}/a", b"{}")


def test_it_refuses_what_is_no_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiver, "BODY_MAX", 100)
    monkeypatch.setattr(receiver, "KEPT_MAX", 1)
    with Receiver(tmp_path / "log") as running:
        assert post(running.url, b"") == 400
        assert post(running.url, b"{") == 400
        assert post(running.url, b"\xff") == 400
        assert post(running.url, b'"' + b"x" * 99 + b'"') == 400
        assert post(running.url, b'"' + b"x" * 98 + b'"') == 200
        assert post(running.url, b"{}") == 507
        assert len(running.messages) == 1
