"""Payloads: values to bytes and back."""

from dataclasses import dataclass
from typing import Any, TypedDict

import msgspec
import pydantic
import pytest

from anvilmq import _codec, errors


class Point(msgspec.Struct):
    """A struct with a default."""

    x: int
    y: int = 2


@dataclass
class Size:
    """A dataclass around a struct."""

    corner: Point
    names: list[str]


class Box(TypedDict):
    """A typed dict."""

    w: int


class Model(pydantic.BaseModel):
    """A pydantic model."""

    n: int


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        (Point(1), Point),
        (Size(Point(1), ["ä", "\u2028"]), Size),
        ({"w": 1}, Box),
        (Model(n=1), Model),
        ([Model(n=1)], list[Model]),
        ([1, "a", None, 2.5], list[Any]),
        ({"a": {"b": 1}}, Any),
        (None, type(None)),
        (2**60, int),
        (b"\x00\xff", bytes),
        (b"\x00\xff", Any),
    ],
)
def test_a_value_comes_back_as_it_was(value: object, type_: Any) -> None:
    data, content_type = _codec.encode(value)
    assert _codec.decode(data, content_type, type_) == value


def test_bytes_go_untouched_and_all_else_as_json() -> None:
    assert _codec.encode(b"{}") == (b"{}", "application/octet-stream")
    assert _codec.encode(Point(1)) == (b'{"x":1,"y":2}', "application/json")
    assert _codec.encode(msgspec.Raw(b'{ "x" :1}')) == (b'{ "x" :1}', "application/json")


def test_unknown_fields_are_ignored_and_new_ones_have_their_defaults() -> None:
    assert _codec.decode(b'{"x":1,"z":9}', "", Point) == Point(1, 2)


def test_no_content_type_is_json_and_no_bytes_are_null() -> None:
    assert _codec.decode(b"5", "", int) == 5
    assert _codec.decode(b"5", "application/json; charset=utf-8", int) == 5
    assert _codec.decode(b"", "", type(None)) is None


@pytest.mark.parametrize(
    ("data", "type_", "path"),
    [
        (b'{"x":"a"}', Point, "$.x"),
        (b"{}", Point, "$"),
        (b'{"corner":{"x":1},"names":[1]}', Size, "$.names[0]"),
        (b'{"n":"a"}', Model, "$"),
        (b"{", Point, "$"),
        (b"\xff", str, "$"),
        (b"", Point, "$"),
        (b"[" * 100_000, Any, "$"),
    ],
)
def test_what_does_not_decode_says_where(data: bytes, type_: Any, path: str) -> None:
    with pytest.raises(errors.PayloadInvalid) as caught:
        _codec.decode(data, "", type_)
    assert caught.value.path == path
    assert str(caught.value).startswith(f"{path}: ")


def test_another_content_type_does_not_decode_but_to_bytes() -> None:
    with pytest.raises(errors.PayloadInvalid, match="image/png"):
        _codec.decode(b"", "image/png", Point)
    assert _codec.decode(b"\x89", "image/png", bytes) == b"\x89"


def circle() -> list[object]:
    """A value that contains itself."""
    made: list[object] = []
    made.append(made)
    return made


@pytest.mark.parametrize("value", [object(), {"a": {1, object()}}, circle(), "\ud800"])
def test_what_has_no_json_form_is_refused(value: object) -> None:
    with pytest.raises(errors.PayloadInvalid, match="cannot be encoded"):
        _codec.encode(value)


class Reverse:
    """A codec that turns the bytes round."""

    def encode(self, data: bytes, content_type: str) -> tuple[bytes, str]:
        """See Codec."""
        return data[::-1], f"x-reverse+{content_type}"

    def decode(self, data: bytes, content_type: str) -> tuple[bytes, str]:
        """See Codec."""
        if data == b"broken":
            raise ValueError("is not mine")
        return data[::-1], content_type.removeprefix("x-reverse+")


def test_a_codec_sees_the_encoded_bytes_both_ways() -> None:
    data, content_type = _codec.encode(Point(1), Reverse())
    assert (data, content_type) == (b'}2:"y",1:"x"{', "x-reverse+application/json")
    assert _codec.decode(data, content_type, Point, Reverse()) == Point(1)


def test_what_a_codec_cannot_read_is_an_invalid_payload() -> None:
    with pytest.raises(errors.PayloadInvalid, match="is not mine"):
        _codec.decode(b"broken", "", Point, Reverse())
