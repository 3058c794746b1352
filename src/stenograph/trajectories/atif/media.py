"""Images (1.6) and audio (1.8) that a document points at: their types and where they may lie.

Nothing here opens a file or fetches anything.
"""

import base64
import binascii
import hashlib
import re
from urllib.parse import unquote, unquote_to_bytes

#: Media type → the ending of a file that holds it.
IMAGES = {"image/jpeg": "jpg", "image/png": "png", "image/gif": "gif", "image/webp": "webp"}
AUDIO = {
    "audio/wav": "wav",
    "audio/mpeg": "mp3",
    "audio/mp4": "m4a",
    "audio/aac": "aac",
    "audio/ogg": "ogg",
    "audio/flac": "flac",
    "audio/webm": "webm",
    "audio/aiff": "aiff",
}
#: Other spellings, as Harbor's `AudioSource` reads them.
_ALIASES = {
    "audio/mp3": "audio/mpeg",
    "audio/mpga": "audio/mpeg",
    "audio/x-mpeg": "audio/mpeg",
    "audio/x-wav": "audio/wav",
    "audio/wave": "audio/wav",
    "audio/vnd.wave": "audio/wav",
    "audio/x-m4a": "audio/mp4",
    "audio/m4a": "audio/mp4",
    "audio/x-aac": "audio/aac",
    "audio/x-flac": "audio/flac",
    "audio/x-aiff": "audio/aiff",
}
_REMOTE = ("https", "http", "s3", "gs")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(//)?")


def audio_type(name: str) -> str:
    """Return the one spelling of an audio media type; image types have no such help."""
    name = name.strip().lower()
    return _ALIASES.get(name, name)


def path_problem(path: str) -> str | None:
    """Say why a media path is not taken; None when it is.

    Taken are relative paths that stay below the document, `https`, `http`, `s3` and `gs` URLs
    (never followed) and `data:` URIs, which carry their bytes with them.
    """
    if scheme := _SCHEME.match(path):
        if scheme[1].lower() == "data" or (scheme[1].lower() in _REMOTE and scheme[2]):
            return None
        return f"a media path may not have the scheme {scheme[1]}:"
    if not path or "\0" in path:
        return "a media path may be neither empty nor hold NUL"
    for spelling in (path, unquote(path)):
        if spelling[0] in "/\\":
            return "a media path must be relative to the document"
        if ".." in re.split(r"[/\\]", spelling):
            return "a media path may not leave the folder of the document"
    return None


def is_local(path: str) -> bool:
    """Whether the path names a file that lies beside the document."""
    return not _SCHEME.match(path)


def data_uri(path: str) -> bytes | None:
    """Return the bytes a `data:` URI carries (RFC 2397); None when it is none, or is broken."""
    head, comma, body = path.partition(",")
    if not comma or not head.lower().startswith("data:"):
        return None
    if not head.lower().endswith(";base64"):
        return unquote_to_bytes(body)
    try:
        return base64.b64decode(unquote(body), validate=True)
    except (binascii.Error, ValueError):
        return None


def file_name(media_type: str, data: bytes) -> str:
    """Return `media/<digest>.<ending>`, the name in a bundle of bytes that came without one."""
    ending = (IMAGES | AUDIO).get(media_type, "bin")
    return f"media/{hashlib.sha256(data).hexdigest()[:32]}.{ending}"
