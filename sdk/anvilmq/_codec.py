"""Payloads and results: values to bytes and back. JSON by msgspec; `bytes` as they are; no pickle.

Types: msgspec.Struct, dataclass, TypedDict, the builtins; pydantic models if pydantic is installed. Unknown fields are
ignored, so a field with a default may be added at any time.
"""

from __future__ import annotations

import functools
import re
from typing import Any, Final, Protocol, TypeVar, cast

import msgspec

from anvilmq import errors

T = TypeVar("T")

JSON: Final = "application/json"
BINARY: Final = "application/octet-stream"


class Codec(Protocol):
    """Changes encoded payloads on their way: encryption, compression. Both ways may be called from any thread."""

    def encode(self, data: bytes, content_type: str) -> tuple[bytes, str]:
        """What is sent in place of this, and its content type, at most 128 bytes."""

    def decode(self, data: bytes, content_type: str) -> tuple[bytes, str]:
        """The way back. What it did not encode itself it returns as it is. ValueError: PayloadInvalid."""


def encode(value: object, codec: Codec | None = None) -> tuple[bytes, str]:
    """The bytes of a value and their content type. PayloadInvalid when it has no JSON form."""
    data, content_type = _encode(value)
    return codec.encode(data, content_type) if codec is not None else (data, content_type)


def decode(data: bytes, content_type: str, type_: type[T], codec: Codec | None = None) -> T:
    """The value of that type. content_type: "" = JSON. No bytes at all read as JSON's null.

    type_: any type that msgspec decodes, a pydantic model, `bytes` (as they are, whatever the content type), or Any.
    PayloadInvalid says where it does not fit.
    """
    if not content_type and codec is None and type_ is not bytes:
        # The most frequent case, past what cannot concern it.
        value: T = _decode_json(data or b"null", type_)
        return value
    if codec is not None:
        try:
            data, content_type = codec.decode(data, content_type)
        except ValueError as error:
            raise errors.PayloadInvalid("$", str(error)) from error
    if type_ is bytes or (type_ is Any and content_type == BINARY):
        return cast("T", data)
    if content_type not in {"", JSON} and not content_type.startswith(f"{JSON};"):
        raise errors.PayloadInvalid("$", f"is {content_type}, which does not decode as {_name(type_)}")
    return cast("T", _decode_json(data or b"null", type_))


def _encode(value: object) -> tuple[bytes, str]:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value), BINARY
    try:
        return msgspec.json.encode(value, enc_hook=_encode_foreign), JSON
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise errors.PayloadInvalid("$", f"{_name(type(value))} cannot be encoded: {error}") from error


def _encode_foreign(value: object) -> object:
    # pydantic is not imported here: a model brings its own way.
    dump = getattr(value, "__pydantic_serializer__", None)
    if dump is None:
        raise TypeError(f"objects of type {_name(type(value))} have no JSON form")
    return msgspec.Raw(dump.to_json(value))


def _decode_json(data: bytes, type_: Any) -> Any:
    try:
        return _decoder(type_).decode(data)
    except msgspec.ValidationError as error:
        path, message = _where(str(error))
        raise errors.PayloadInvalid(path, message) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise errors.PayloadInvalid("$", f"is not JSON: {error}") from error


@functools.lru_cache(maxsize=1_024)
def _decoder(type_: object) -> msgspec.json.Decoder[Any]:
    """Making a decoder costs as much as a hundred uses of it."""
    return msgspec.json.Decoder(cast("type[Any]", type_), dec_hook=_decode_foreign)


def _decode_foreign(type_: type, value: object) -> object:
    validate = getattr(type_, "model_validate", None)
    if validate is None:
        raise NotImplementedError(f"type {_name(type_)} cannot be decoded")
    return validate(value)


def _where(message: str) -> tuple[str, str]:
    """Take msgspec's text apart: it tells the place in no other way."""
    found = re.fullmatch(r"(.*) - at `(?:key in )?(.*)`", message, re.DOTALL)
    return (found[2], found[1]) if found else ("$", message)


def _name(type_: object) -> str:
    return getattr(type_, "__qualname__", None) or str(type_)
