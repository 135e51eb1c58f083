"""Runbooks as pages for people: what an alert links to opens in a browser, from the server that is asked anyway.

They are shipped with the program and say nothing of any cluster, so they need no token, as the page needs none: a link
carries none. A name is looked up among those there are; nothing that is asked for becomes a path.
"""

from __future__ import annotations

from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

from api.access.middleware import RUNBOOKS_PREFIX
from api.errors import NotFound

if TYPE_CHECKING:
    from markdown_it.token import Token

router = APIRouter(include_in_schema=False)

FOLDERS = (Path(__file__).parents[1] / "runbooks", Path(__file__).parents[2] / "docs" / "runbooks")
"""Where they lie in an installed package, and in the repository."""


@cache
def pages() -> dict[str, str]:
    """HTML by name; names as links have them, with `.md`. None where they were not shipped."""
    folder = next((one for one in FOLDERS if one.is_dir()), None)
    return {} if folder is None else {path.name: _page(path.read_text("utf-8")) for path in sorted(folder.glob("*.md"))}


@router.get(RUNBOOKS_PREFIX + "{name}")
async def runbook(name: str) -> Response:
    """One runbook, with or without `.md` behind its name."""
    found = pages().get(name if name.endswith(".md") else f"{name}.md")
    if found is None:
        raise NotFound("runbook", "No runbook has this name; an alert's runbook_url says which it has.")
    return HTMLResponse(found)


@router.get(RUNBOOKS_PREFIX)
async def runbooks() -> Response:
    """All of them."""
    names = "".join(f'<li><a href="{name}">{name.removesuffix(".md")}</a></li>' for name in pages())
    return HTMLResponse(_html("Runbooks", f"<h1>Runbooks</h1><ul>{names}</ul>"))


def _page(text: str) -> str:
    from markdown_it import MarkdownIt  # a question on the command line reads no runbook

    markdown = MarkdownIt("commonmark", {"html": False})
    tokens = markdown.parse(text)
    for token in tokens:
        _keep_own_links(token.children or [])
    title = next((token.content for token in tokens if token.type == "inline"), "Runbook")
    return _html(title, markdown.renderer.render(tokens, markdown.options, {}))


def _keep_own_links(tokens: list[Token]) -> None:
    """A link to another runbook stays one; the rest of the documents is not served, so it is emphasis only."""
    inside = 0
    for token in tokens:
        if token.type == "link_open" and "/" in str(token.attrGet("href")):
            token.type, token.tag, token.attrs, inside = "em_open", "em", {}, inside + 1
        elif token.type == "link_close" and inside:
            token.type, token.tag, inside = "em_close", "em", inside - 1


def _html(title: str, body: str) -> str:
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f'<title>{escape(title)} · Kardia</title><link rel="stylesheet" href="/page/style.css"></head>'
        f'<body><main class="runbook">\n{body}</main></body></html>\n'
    )
