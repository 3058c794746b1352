"""Sealing: what is encrypted at rest, and the key that does it (AES-256-GCM, NIST SP 800-38D)."""

import base64
import binascii
import os
import tempfile
from contextvars import ContextVar
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from stenograph.errors import InvalidInputError, StenographError

FILE = "key"
#: What a request has sealed and opened, so that nothing told of it holds any; None outside of one.
plain_texts: ContextVar[set[str] | None] = ContextVar("plain_texts", default=None)

_NONCE = 12
_KEY = 32


class SealError(StenographError):
    """A sealed value was changed, moved to another context, or sealed with another key."""

    code = "seal_broken"


class Sealer:
    """Seals text with one key. `context` says what the value is for; it must match to open."""

    __slots__ = ("_cipher",)

    def __init__(self, key: bytes) -> None:
        if len(key) != _KEY:
            raise ValueError("the sealing key must be 32 bytes")
        self._cipher = AESGCM(key)

    def seal(self, text: str, context: str) -> bytes:
        """Encrypt: a random nonce of 12 bytes, then the ciphertext with its tag."""
        _note(text)
        nonce = os.urandom(_NONCE)
        return nonce + self._cipher.encrypt(nonce, text.encode(), context.encode())

    def open(self, data: bytes, context: str) -> str:
        """Decrypt; raises `SealError`."""
        try:
            text = self._cipher.decrypt(data[:_NONCE], data[_NONCE:], context.encode()).decode()
        except (InvalidTag, ValueError):
            raise SealError("A sealed value cannot be opened with this key") from None
        _note(text)
        return text


def _note(text: str) -> None:
    if (known := plain_texts.get()) is not None:
        known.add(text)


def sealer(data: Path, key: str | None) -> Sealer:
    """Return the sealer of `key` (base64), or of the file `key` in the data folder.

    The file is made at first use, of mode 600; two processes that make it at once end up with
    the same one. Raises `InvalidInputError` for a key that is none.
    """
    if key is None:
        path = data / FILE
        if not path.exists():
            _make(path)
        key = path.read_text("ascii").strip()
    try:
        return Sealer(base64.b64decode(key, validate=True))
    except (binascii.Error, ValueError):
        raise InvalidInputError(
            "The sealing key must be base64 of 32 bytes", code="invalid_key"
        ) from None


def _make(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor, name = tempfile.mkstemp(dir=path.parent)  # of mode 600
    partial = Path(name)
    with os.fdopen(descriptor, "wb") as file:
        file.write(base64.b64encode(os.urandom(_KEY)))
        file.flush()
        os.fsync(file.fileno())
    try:
        # A link, unlike a rename, does not replace what another process just made.
        os.link(partial, path)
    except FileExistsError:
        pass
    finally:
        partial.unlink()
