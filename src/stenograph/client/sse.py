"""Server-sent events as they come in (WHATWG HTML, section 9.2)."""

from dataclasses import dataclass

from stenograph.client.calls import Answer
from stenograph.client.records import Frame


@dataclass(slots=True)
class Parser:
    """Puts events together out of bytes.

    It splits where the format does: at LF and CRLF. What Python takes for the end of a line
    besides, U+2028 for one, stands in the text of answers as it is.
    """

    _rest: bytes = b""
    _type: str = ""
    _data: bytes | None = None
    _id: str | None = None

    def feed(self, chunk: bytes) -> list[Frame]:
        """Take what came; return the events that are whole by now. Raises `MalformedResponse`."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        found = []
        for line in lines:
            frame = self._line(line.removesuffix(b"\r"))
            if frame is not None:
                found.append(frame)
        return found

    def _line(self, line: bytes) -> Frame | None:
        if not line:
            return self._whole()
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match name:
            case b"event":
                self._type = value.decode("utf-8", "replace")
            case b"id":
                self._id = value.decode("utf-8", "replace")
            case b"data":
                self._data = value if self._data is None else self._data + b"\n" + value
        return None

    def _whole(self) -> Frame | None:
        kind, data, cursor = self._type, self._data, self._id
        self._type, self._data, self._id = "", None, None
        return None if data is None else _frame(kind, data, cursor)


def _frame(kind: str, data: bytes, cursor: str | None) -> Frame:
    return Frame(type=kind, data=Answer(200, {}, data).document, cursor=cursor)
