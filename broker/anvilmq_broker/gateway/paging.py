"""Page tokens: opaque, signed, bound to their list and filter; they hold a key position, no offset (api section 8)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import Any, Final

import msgspec
from google.protobuf.message import Message

from anvilmq_broker.gateway.refusals import page_token_invalid

_MAC_BYTES: Final = 16
_MAX_TOKEN: Final = 2_048


class Pages:
    """Makes and reads the tokens of one engine. key: from its greeting, the same for every gateway."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def token(self, request: Message, after: Any) -> str:
        """The token of the page after position `after`; "" for None, the end."""
        if after is None:
            return ""
        position = msgspec.msgpack.encode(after)
        return base64.urlsafe_b64encode(self._mac(request, position) + position).decode()

    def position(self, request: Message, kind: type[Any]) -> Any:
        """The position that the request's page_token holds, as `kind`; None for the first page.

        Raises Rejected PAGE_TOKEN_INVALID for a token of another broker, list or filter.
        """
        token: str = request.page_token  # type: ignore[attr-defined]
        if not token:
            return None
        try:
            if len(token) > _MAX_TOKEN:
                raise page_token_invalid()
            raw = base64.b64decode(token, altchars=b"-_", validate=True)
            mac, position = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
            if not hmac.compare_digest(mac, self._mac(request, position)):
                raise page_token_invalid()
            return msgspec.msgpack.decode(position, type=kind)
        except (binascii.Error, ValueError, msgspec.DecodeError):
            raise page_token_invalid() from None

    def _mac(self, request: Message, position: bytes) -> bytes:
        scope = type(request)()
        scope.CopyFrom(request)
        scope.ClearField("page_token")
        scope.ClearField("page_size")
        wanted = msgspec.msgpack.encode((request.DESCRIPTOR.full_name, scope.SerializeToString(deterministic=True)))
        # msgpack ends by itself, so filter and position cannot run into each other.
        text = wanted + position
        return hmac.digest(self._key, text, hashlib.sha256)[:_MAC_BYTES]
