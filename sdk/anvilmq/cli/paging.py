"""Lists come in pages: the flags that say how much of one is wanted, and the calls that fetch it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Annotated, Any, Final, Protocol, TypedDict, TypeVar

import typer

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from anvilmq.cli.output import Listing

_PANEL: Final = "Paging"
DEFAULT_LIMIT: Final = 100
LARGEST_PAGE: Final = 1_000


class PageFlags(TypedDict):
    """How much of a list is wanted. None: not given."""

    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            metavar="N",
            min=1,
            help="At most that many; else 100.",
            rich_help_panel=_PANEL,
            show_default=False,
        ),
    ]
    all: Annotated[bool, typer.Option("--all", help="As many as there are.", rich_help_panel=_PANEL)]
    page_token: Annotated[
        str | None,
        typer.Option(
            "--page-token",
            metavar="TOKEN",
            help="Go on where an earlier list ended.",
            rich_help_panel=_PANEL,
            show_default=False,
        ),
    ]


class PageRequest(Protocol):
    """A request for a page."""

    page_size: int
    page_token: str


class Page(Protocol):
    """An answer to it."""

    next_page_token: str


Q = TypeVar("Q", bound=PageRequest)
P = TypeVar("P", bound=Page)
M = TypeVar("M", bound="Message")


async def pages(
    call: Callable[[Q], Awaitable[P]], request: Q, items_of: Callable[[P], Iterable[Any]], limit: int | None
) -> AsyncIterator[P]:
    """The pages from the request's token on, until they hold `limit` items; None = all. The request is used up."""
    left = limit
    while left is None or left > 0:
        request.page_size = LARGEST_PAGE if left is None else min(LARGEST_PAGE, left)
        page = await call(request)
        yield page
        if left is not None:
            left -= sum(1 for _ in items_of(page))
        request.page_token = page.next_page_token
        if not page.next_page_token:
            return


async def fill(
    listing: Listing[M],
    flags: PageFlags,
    call: Callable[[Q], Awaitable[P]],
    request: Q,
    items_of: Callable[[P], Iterable[M]],
) -> None:
    """Print as much of a list as the flags want."""
    request.page_token = flags["page_token"] or ""
    limit = None if flags["all"] else flags["limit"] or DEFAULT_LIMIT
    token = ""
    async for page in pages(call, request, items_of, limit):
        listing.add(items_of(page))
        token = page.next_page_token
    listing.end(token)
