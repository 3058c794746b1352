"""Results of tools: what the model was sent, and what the log knows beside it.

`content` is what the model was sent, also where the program cut a large output and left the
whole in `tool-results/`: a training set made of the other would be of a conversation that never
was. The whole output lies beside it, in `extra.claude_code.full_output`.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from stenograph.trajectories.atif.format import Content, Extra, Json, ObservationResult
from stenograph.trajectories.importers.claude_code.content import (
    Gathered,
    as_json,
    blocks,
    joined,
    part,
)

_PERSISTED = re.compile(r"<persisted-output>\n.*? saved to: ([^\n]+)\n", re.DOTALL)
_EXIT_CODE = re.compile(r"Exit code (\d{1,9})\b")

#: Fields of `toolUseResult` that say again what the result, the call or the child says.
_REPEATED = {"content", "originalFile", "prompt", "usage", "base64", "persistedOutputPath"}
#: Fields that are kept even where the content names them too.
_IDENTITY = {"agentId", "status"}
#: Flags that are of interest only when set.
_FLAGS = {"interrupted", "isImage", "noOutputExpected", "userModified", "replaceAll", "truncated"}
#: Characters of JSON above which a field stays in the original file only.
_LARGE = 4_000


def result(
    block: dict[str, Json],
    structured: Json,
    arguments: Mapping[str, Json],
    outputs: Mapping[str, str],
    gathered: Gathered,
) -> ObservationResult:
    """Return a `tool_result` block as a result that answers its call.

    `structured` is the line's `toolUseResult`, `arguments` those of the call, `outputs` the large
    outputs of the session by file name.
    """
    native = block.get("content")
    content, extra = _content(native, gathered)
    facts: Extra = {}
    text = _plain(content)
    full = _full_output(text, outputs)
    if block.get("is_error") is True:
        extra["is_error"] = True
        if exit_code := _EXIT_CODE.match(text):
            facts["exit_code"] = int(exit_code[1])
    facts |= _facts(structured, [text, full or "", *_strings(arguments)])
    if full is not None:
        facts["full_output"] = full
    if facts:
        extra["claude_code"] = facts
    call_id = block.get("tool_use_id")
    return ObservationResult(
        source_call_id=call_id if isinstance(call_id, str) else None,
        content=content,
        extra=extra or None,
    )


def _content(native: Json, gathered: Gathered) -> tuple[Content | None, Extra]:
    """Return content as ATIF has it: an object becomes its JSON text, and stays in the extra."""
    if native is None:
        return None, {}
    if isinstance(native, dict) and native.get("type") not in ("text", "image", "document"):
        return as_json(native), {"tool_result": native}
    return joined(part(block, gathered) for block in blocks(native)), {}


def _plain(content: Content | None) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.text for part in content or () if part.text is not None)


def _full_output(text: str, outputs: Mapping[str, str]) -> str | None:
    saved = _PERSISTED.match(text)
    return None if saved is None else outputs.get(PurePosixPath(saved[1]).name)


def _facts(structured: Json, said: list[str]) -> Extra:
    """Return what the structured form of a result says beyond the texts in `said`."""
    if isinstance(structured, str):
        text = structured.removeprefix("Error: ")
        return {} if _is_said(text, said) else {"text": structured}
    if not isinstance(structured, dict):
        return {}
    facts: Extra = {}
    left_out = []
    for name, value in structured.items():
        if name in _REPEATED or (name in _FLAGS and value is False):
            continue
        if isinstance(value, dict):
            value = _facts(value, said)
        if not value and value is not False and value != 0:
            continue
        if name in _IDENTITY or not _is_all_said(value, said):
            if name != "stdout" and len(as_json(value)) > _LARGE:
                left_out.append(name)
            else:
                facts[name] = value
    if left_out:
        facts["left_out"] = left_out
    return facts


def _is_said(text: str, said: list[str]) -> bool:
    return any(text.strip() in other for other in said)


def _is_all_said(value: Json, said: list[str]) -> bool:
    return _is_text(value) and all(_is_said(text, said) for text in _strings(value))


def _is_text(value: Json) -> bool:
    """Whether a value is nothing but strings and lists or objects of them."""
    if isinstance(value, dict):
        return all(_is_text(item) for item in value.values())
    if isinstance(value, list):
        return all(_is_text(item) for item in value)
    return isinstance(value, str)


def _strings(value: Json) -> Iterator[str]:
    """Return the strings of a JSON value, without the names of block types."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            if name != "type":
                yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
