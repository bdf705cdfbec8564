"""Tokens, their scopes and patterns, and the file they stand in."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from anvilmq_broker.domain import view
from anvilmq_broker.gateway.auth import Caller, Open, Tokens, TokensFile, TokensInvalid, parse_tokens
from anvilmq_broker.gateway.refusals import Rejected

FILE = f"""
- name: shop
  token: s3cret
  scopes:
    - {{scope: produce, queues: [images, "mail-*"]}}
    - {{scope: work, queues: ["*"]}}
- name: hashed
  token_sha256: {hashlib.sha256(b"other").hexdigest()}
  scopes: [{{scope: read}}]
"""


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def test_a_token_is_found_in_the_clear_and_by_its_hash() -> None:
    tokens = Tokens(parse_tokens(FILE))
    assert tokens.authenticate(bearer("s3cret")).name == "shop"
    assert tokens.authenticate({"authorization": "bearer other"}).name == "hashed"


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ({}, "TOKEN_MISSING"),
        ({"authorization": ""}, "TOKEN_MISSING"),
        ({"authorization": "Basic s3cret"}, "TOKEN_MISSING"),
        ({"authorization": "Bearer "}, "TOKEN_MISSING"),
        ({"authorization": "Bearer wrong"}, "TOKEN_INVALID"),
        ({"authorization": "Bearer ü\0"}, "TOKEN_INVALID"),
    ],
)
def test_without_a_good_token_nobody_is_let_in(metadata: dict[str, str], reason: str) -> None:
    with pytest.raises(Rejected) as caught:
        Tokens(parse_tokens(FILE)).authenticate(metadata)
    assert caught.value.refused.reason == reason
    assert "s3cret" not in caught.value.refused.message


def test_a_scope_reaches_the_queues_of_its_patterns_and_no_others() -> None:
    shop = Tokens(parse_tokens(FILE)).authenticate(bearer("s3cret"))
    for queue, expected in (("images", True), ("mail-", True), ("mail-a.b", True), ("imagesx", False), ("mail", False)):
        assert shop.allows(("produce",), queue) is expected
        assert shop.allows(("produce",), queue) is expected, "remembered"
    assert shop.allows(("work",), "anything")
    assert not shop.allows(("admin",), "images")
    assert shop.allows(("admin", "work"), "images")


@pytest.mark.parametrize("pattern", ["*", "a*", "*a", "a*b*c", "**", "a.b", "a*.b", "a"])
@pytest.mark.parametrize("queue", ["a", "ab", "abc", "axbxc", "a.b", "axb", "b", "ca"])
def test_the_gateway_and_the_stores_read_patterns_alike(pattern: str, queue: str) -> None:
    assert Caller("c", b"", {"read": [pattern]}).allows(("read",), queue) is view.queue_allowed(queue, [pattern])


def test_lists_are_narrowed_to_the_patterns_of_all_scopes_that_would_do() -> None:
    caller = Caller("c", b"", {"read": ["b", "a*"], "work": ["c"], "admin": ["*"]})
    assert caller.patterns(("read",)) == ["a*", "b"]
    assert caller.patterns(("read", "work")) == ["a*", "b", "c"]
    assert caller.patterns(("read", "admin")) is None
    assert caller.patterns(("produce",)) == []


def test_a_missing_scope_is_named_with_its_queue() -> None:
    with pytest.raises(Rejected) as caught:
        Caller("shop", b"", {"read": ["a"]}).require(("produce", "read"), "b")
    assert caught.value.refused.metadata == {"scope": "produce or read", "queue": "b"}
    assert "shop" in caught.value.refused.message


def test_without_authentication_everyone_may_do_everything() -> None:
    caller = Open().authenticate({})
    assert all(caller.allows((scope,), "q") for scope in ("produce", "work", "read", "operate", "admin"))
    assert caller.patterns(("admin",)) is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "is not YAML at line"),
        ("- {name: 2026-13-45}", "no value of its kind"),
        ("- {name: !!int ''}", "no value of its kind"),
        ("[" * 5_000, "no value of its kind"),
        ("a: b", "Expected `array`"),
        ("- {name: a}", "scopes"),
        ("- {name: a, scopes: [], token: x, extra: 1}", "extra"),
        ("- {name: a, scopes: []}", "either token or token_sha256"),
        ("- {name: a, scopes: [], token: x, token_sha256: y}", "either token or token_sha256"),
        ("- {name: a, scopes: [], token_sha256: xyz}", "64 hexadecimal digits"),
        ("- {name: a, token: x, scopes: [{scope: produces}]}", "none of produce, work, read, operate, admin"),
        ("- {name: a, token: x, scopes: [{scope: read, queues: ['a b']}]}", "not a queue name"),
        ("- {name: a, token: x, scopes: []}\n- {name: b, token: x, scopes: []}", "'a' and 'b' have the same token"),
        ("- {name: a, token: 5, scopes: []}", "Expected `str`"),
    ],
)
def test_a_tokens_file_that_is_wrong_says_where(text: str, says: str) -> None:
    with pytest.raises(TokensInvalid, match=r".+") as caught:
        parse_tokens(text)
    assert says in str(caught.value)


def test_a_missing_file_names_the_setting(tmp_path: Path) -> None:
    with pytest.raises(TokensInvalid, match="ANVILMQ_TOKENS_FILE"):
        TokensFile(tmp_path / "none")


def write(path: Path, token: str) -> None:
    """As a mounted Secret changes: a new file under the same name."""
    fresh = path.with_suffix(".new")
    fresh.write_text(f"- {{name: a, token: {token}, scopes: [{{scope: read}}]}}")
    fresh.replace(path)


def test_a_changed_file_is_read_again_and_says_so_once(tmp_path: Path) -> None:
    path = tmp_path / "tokens.yaml"
    write(path, "one")
    tokens, changes = TokensFile(path), []
    caller = tokens.authenticate(bearer("one"))
    tokens.reload_if_changed(lambda: changes.append(1))
    assert changes == []
    write(path, "two")
    tokens.reload_if_changed(lambda: changes.append(1))
    tokens.reload_if_changed(lambda: changes.append(1))
    assert changes == [1]
    assert tokens.authenticate(bearer("two")).name == "a"
    assert tokens.current(caller) is None


def test_a_file_that_has_become_unusable_leaves_the_old_tokens_in_force(tmp_path: Path) -> None:
    path = tmp_path / "tokens.yaml"
    write(path, "one")
    tokens = TokensFile(path)
    for text in ("{", "- {name: 2026-13-45}"):
        path.write_text(text)
        tokens.reload_if_changed(lambda: pytest.fail("nothing has changed"))
    path.unlink()
    tokens.reload_if_changed(lambda: pytest.fail("nothing has changed"))
    assert tokens.authenticate(bearer("one")).name == "a"
