"""An observer made of the stored bytes of another, as a restart of the job makes it."""

from __future__ import annotations

import msgspec

from kardia.observe import Observer


def restored(observer: Observer) -> Observer:
    """It goes on where the other one stood, with nothing of it in common."""
    state = msgspec.msgpack.decode(msgspec.msgpack.encode(observer.snapshot()))
    return Observer.restore(observer.settings, observer.lane, state)
