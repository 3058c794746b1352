"""Sealing: only the same key and context open, and every change is noticed."""

import base64
import os
import stat
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stenograph.errors import InvalidInputError
from stenograph.storage.sealing import Sealer, SealError, sealer

KEY = bytes(range(32))


@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=200), st.text("abc:/", max_size=9)
)
@settings(max_examples=100, deadline=None)
def test_what_is_sealed_opens_in_its_context_only(text, context):
    sealed = Sealer(KEY).seal(text, context)
    assert Sealer(KEY).open(sealed, context) == text
    assert len(text) < 3 or text.encode() not in sealed
    with pytest.raises(SealError):
        Sealer(KEY).open(sealed, context + "x")
    with pytest.raises(SealError):
        Sealer(bytes(32)).open(sealed, context)


def test_every_changed_or_missing_byte_is_noticed():
    sealed = Sealer(KEY).seal("hunter2", "secret:1")
    for index in range(len(sealed)):
        changed = bytearray(sealed)
        changed[index] ^= 1
        with pytest.raises(SealError):
            Sealer(KEY).open(bytes(changed), "secret:1")
        with pytest.raises(SealError):
            Sealer(KEY).open(sealed[:index], "secret:1")


def test_the_same_text_is_never_sealed_alike():
    assert len({Sealer(KEY).seal("hunter2", "c") for _ in range(100)}) == 100


def test_the_key_file_is_made_once_and_its_owners_alone(tmp_path):
    sealed = sealer(tmp_path, None).seal("x", "c")
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    assert len(base64.b64decode((tmp_path / "key").read_text())) == 32
    assert sealer(tmp_path, None).open(sealed, "c") == "x"
    assert os.listdir(tmp_path) == ["key"]


def test_starts_at_once_end_with_one_key(tmp_path):
    together = threading.Barrier(8)
    found = []

    def start():
        together.wait()
        found.append(sealer(tmp_path, None).seal("x", "c"))

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [sealer(tmp_path, None).open(sealed, "c") for sealed in found] == ["x"] * 8


def test_a_key_from_the_environment_needs_no_file(tmp_path):
    given_key = base64.b64encode(KEY).decode()
    assert sealer(tmp_path, given_key).open(Sealer(KEY).seal("x", "c"), "c") == "x"
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("key", ["short", "!!!", "", base64.b64encode(b"x" * 31).decode()])
def test_what_is_no_key_is_said(tmp_path, key):
    with pytest.raises(InvalidInputError, match="base64 of 32 bytes"):
        sealer(tmp_path, key)
