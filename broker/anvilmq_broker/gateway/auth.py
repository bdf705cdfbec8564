"""Who calls, and what they may do: tokens with scopes, each for queue patterns (api section 8)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec
import structlog
import yaml

from anvilmq_broker.gateway.refusals import scope_missing, token_invalid, token_missing

log: Final = structlog.get_logger()

SCOPES: Final = ("produce", "work", "read", "operate", "admin")
_PATTERN: Final = re.compile(r"[A-Za-z0-9_.:*-]{1,128}")
_SHA256: Final = re.compile(r"[0-9a-fA-F]{64}")
_MOST_REMEMBERED: Final = 4_096


class TokensInvalid(Exception):
    """The tokens file cannot be used; the message names the entry and the remedy."""


class Caller:
    """One token's rights. grants: scope → its queue patterns, in which `*` stands for any text."""

    def __init__(self, name: str, digest: bytes, grants: Mapping[str, Sequence[str]]) -> None:
        self.name = name
        self.digest = digest
        self.grants = {scope: tuple(patterns) for scope, patterns in grants.items() if patterns}
        self._regexes = {scope: _compile(patterns) for scope, patterns in self.grants.items()}
        self._known: dict[tuple[tuple[str, ...], str], bool] = {}

    def allows(self, scopes: tuple[str, ...], queue: str) -> bool:
        """Whether one of the scopes reaches the queue."""
        known = self._known.get((scopes, queue))
        if known is not None:
            return known
        found = any(scope in self._regexes and self._regexes[scope].fullmatch(queue) for scope in scopes)
        if len(self._known) >= _MOST_REMEMBERED:
            self._known.clear()
        self._known[scopes, queue] = found
        return found

    def patterns(self, scopes: tuple[str, ...]) -> list[str] | None:
        """The queue patterns that the scopes reach together; None = every queue, [] = none."""
        found = sorted({pattern for scope in scopes for pattern in self.grants.get(scope, ())})
        return None if any(not pattern.strip("*") for pattern in found) else found

    def require(self, scopes: tuple[str, ...], queue: str) -> None:
        """Raise Rejected SCOPE_MISSING unless one of the scopes reaches the queue."""
        if not self.allows(scopes, queue):
            raise scope_missing(self.name, scopes, queue)

    def require_any(self, scopes: tuple[str, ...]) -> None:
        """Raise Rejected SCOPE_MISSING unless one of the scopes is there, for whatever queue."""
        if not any(scope in self.grants for scope in scopes):
            raise scope_missing(self.name, scopes, "")


class Authenticator(Protocol):
    """Finds the caller of an RPC."""

    def authenticate(self, metadata: Mapping[str, str]) -> Caller:
        """The caller. Raises Rejected TOKEN_MISSING or TOKEN_INVALID."""

    def current(self, caller: Caller) -> Caller | None:
        """The caller with the rights of now; None when the token is no longer known."""


class Open:
    """No authentication: everyone may do everything."""

    def __init__(self) -> None:
        self._everyone = Caller("anyone", b"", dict.fromkeys(SCOPES, ("*",)))

    def authenticate(self, metadata: Mapping[str, str]) -> Caller:
        """Everyone."""
        return self._everyone

    def current(self, caller: Caller) -> Caller | None:
        """Everyone stays."""
        return caller


class Tokens:
    """The tokens of a set of callers, found by their SHA-256, so that no comparison depends on a secret's bytes."""

    def __init__(self, callers: Mapping[bytes, Caller]) -> None:
        self._callers = callers

    def authenticate(self, metadata: Mapping[str, str]) -> Caller:
        """The caller whose token stands in `authorization: Bearer <token>`."""
        kind, _, token = metadata.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not token:
            raise token_missing()
        if (caller := self._callers.get(hashlib.sha256(token.strip().encode()).digest())) is None:
            raise token_invalid()
        return caller

    def current(self, caller: Caller) -> Caller | None:
        """The caller of the same token."""
        return self._callers.get(caller.digest)


class TokensFile:
    """The tokens of a file, read again when it changes. A file that has become unusable leaves the old tokens in force."""

    def __init__(self, path: Path) -> None:
        """Raises TokensInvalid."""
        self._path = path
        self._seen = self._state()
        self._tokens = Tokens(read_tokens(path))

    def authenticate(self, metadata: Mapping[str, str]) -> Caller:
        """The caller by the tokens of now."""
        return self._tokens.authenticate(metadata)

    def current(self, caller: Caller) -> Caller | None:
        """The caller of the same token."""
        return self._tokens.current(caller)

    def reload_if_changed(self, changed: Callable[[], None]) -> None:
        """Look at the file, and call `changed` after new tokens are in force. Called by a timer."""
        if (state := self._state()) == self._seen:
            return
        self._seen = state
        try:
            self._tokens = Tokens(read_tokens(self._path))
        except TokensInvalid as error:
            log.warning("tokens_file_unusable", path=str(self._path), error=str(error))
            return
        log.info("tokens_file_reloaded", path=str(self._path))
        changed()

    def _state(self) -> tuple[int, int, int] | None:
        # A mounted Secret changes by a new link: the inode tells it even within one tick of the file system's clock.
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino


class _Grant(msgspec.Struct, forbid_unknown_fields=True):
    scope: str
    queues: tuple[str, ...] = ("*",)


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    scopes: list[_Grant]
    token: str = ""
    token_sha256: str = ""


def read_tokens(path: Path) -> dict[bytes, Caller]:
    """The callers of a tokens file by the SHA-256 of their token. Raises TokensInvalid."""
    try:
        return parse_tokens(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise TokensInvalid(f"{path} cannot be read: {error}; name the tokens file in ANVILMQ_TOKENS_FILE") from error
    except TokensInvalid as error:
        raise TokensInvalid(f"{path}: {error}") from error


def parse_tokens(text: str) -> dict[bytes, Caller]:
    """The callers of a text: a YAML list of {name, token or token_sha256, scopes: [{scope, queues}]}."""
    try:
        raw = _load(text)
        entries = msgspec.convert(raw, list[_Entry])
    except yaml.YAMLError as error:
        # The parser's message quotes the line, which may hold a secret.
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark else ""
        raise TokensInvalid(f"is not YAML{where}") from None
    except msgspec.ValidationError as error:
        raise TokensInvalid(
            f"{error}; an entry is {{name, token or token_sha256, scopes: [{{scope, queues}}]}}"
        ) from None
    callers: dict[bytes, Caller] = {}
    for entry in entries:
        caller = _caller(entry)
        if caller.digest in callers:
            raise TokensInvalid(f"entries {callers[caller.digest].name!r} and {entry.name!r} have the same token")
        callers[caller.digest] = caller
    return callers


def _load(text: str) -> Any:
    """The value of a YAML text. Raises YAMLError, TokensInvalid."""
    try:
        return yaml.safe_load(text)
    except (ValueError, LookupError, AttributeError, TypeError, ArithmeticError, RecursionError):
        # The parser lets through what making a value raises: a date that does not exist, an empty !!int, deep nesting.
        raise TokensInvalid("has text that is no value of its kind, such as a date that does not exist") from None


def _caller(entry: _Entry) -> Caller:
    if bool(entry.token) == bool(entry.token_sha256):
        raise TokensInvalid(f"entry {entry.name!r} needs either token or token_sha256")
    if entry.token_sha256 and not _SHA256.fullmatch(entry.token_sha256):
        raise TokensInvalid(f"token_sha256 of entry {entry.name!r} is not 64 hexadecimal digits")
    digest = bytes.fromhex(entry.token_sha256) if entry.token_sha256 else hashlib.sha256(entry.token.encode()).digest()
    grants: dict[str, list[str]] = {}
    for grant in entry.scopes:
        if grant.scope not in SCOPES:
            raise TokensInvalid(f"entry {entry.name!r}: scope {grant.scope!r} is none of {', '.join(SCOPES)}")
        for pattern in grant.queues:
            if not _PATTERN.fullmatch(pattern):
                raise TokensInvalid(f"entry {entry.name!r}: {pattern!r} is not a queue name with * in it")
        grants.setdefault(grant.scope, []).extend(grant.queues)
    return Caller(entry.name, digest, grants)


def _compile(patterns: Sequence[str]) -> re.Pattern[str]:
    # Runs of * mean one, so that no pattern can make the search long.
    parts = (".*".join(re.escape(part) for part in re.split(r"\*+", pattern)) for pattern in patterns)
    return re.compile("|".join(f"(?:{part})" for part in parts))
