"""What of a tool's output, and of a model's words, is kept and what is told."""

#: Characters of an output that the model is told; the record keeps it whole up to `LONGEST`.
PREVIEW = 4_000
#: Characters of an output that are kept.
LONGEST = 1_000_000

_HEAD = 3_000


def storable(text: str) -> str:
    """Replace what no database takes: NUL and lone surrogates become U+FFFD."""
    if not text.isascii():
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.replace("\x00", "\ufffd")


def kept(output: str) -> tuple[str, bool]:
    """Return the part of an output that is kept, and whether it is only a part."""
    text = storable(output[: LONGEST + 1])
    return text[:LONGEST], len(output) > LONGEST


def preview(output: str) -> str:
    """Cut a long output to `PREVIEW` characters: its beginning, what was left out, its end."""
    if len(output) <= PREVIEW:
        return output
    left_out = f"\n[… {len(output)} characters in all, the middle is left out …]\n"
    return output[:_HEAD] + left_out + output[_HEAD + len(left_out) - PREVIEW :]
