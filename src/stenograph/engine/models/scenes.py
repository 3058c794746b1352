"""The scenes of the dev models: read from TOML, and chosen by what the person said.

The format is explained in `scripts/scenes.toml`.
"""

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta

from stenograph.engine.models.failures import FailureKind, ModelFailedError
from stenograph.engine.models.request import ASIDE, Message, ToolResult

_T = TypeVar("_T")

#: Characters that a text of a round may have: anybody may bring a scene.
_LONGEST = 10_000_000
#: Characters of a scene that a message brings.
_OWN_LONGEST = 200_000


class Call(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A tool call; `raw` is sent instead of `arguments`, to be as wrong as it is."""

    tool: str
    arguments: dict[str, Any] = {}
    raw: str | None = None


class Fail(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A failure of the first `times` attempts; what the round says is heard by half before it."""

    kind: FailureKind
    retry_after: float | None = None
    times: int = 1_000_000


class Round(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One call of the model."""

    think: str = ""
    say: str = ""
    repeat: Annotated[int, Meta(ge=0)] = 1
    call: tuple[Call, ...] = ()
    pause_ms: Annotated[int, Meta(ge=0, le=86_400_000)] = 0
    finish: Literal["stop", "length"] = "stop"
    fail: Fail | None = None


class Scene(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The rounds of one turn; when they are used up and results still come, it says it is done.

    `window`: how many tokens the model takes. `summary`: what it says when asked to sum up.
    """

    round: tuple[Round, ...]
    about: str = ""
    window: int = 200_000
    summary: Round = Round(say="A person asked, and some of it is done.")


_SCENE_NAME = re.compile(r"\[dev:(?!call\b)([A-Za-z0-9_-]+)\]")
_ASKED_CALL = re.compile(r"\[dev:call\s+([A-Za-z0-9_.-]+)\s*")
_OWN_SCENE = re.compile(r"```dev-scene\n(.*?)```", re.DOTALL)
#: What takes a reader of TOML a minute: `a.a.a.a… = 1`.
_LONG_KEY = re.compile(r"""(?:\.\s*(?:"[^"\n]*"|'[^'\n]*'|[\w-]+)\s*){32}[=\]]""")
_DONE = Round(say="Done.")
#: What a request says of rounds that it does not show any more.
_ROUNDS_GONE = re.compile(r"(\d+) rounds? of the running turn")


def next_round(
    messages: tuple[Message, ...], model_ref: str, script: Path | None
) -> tuple[Round, int]:
    """Return the round to play now, its placeholders filled, and the scene's window.

    `script` is a file of scenes that win over the shipped ones. Raises `ModelFailedError`
    `invalid_request` for a scene that is not there or cannot be read.
    """
    turn = _turn(messages)
    scene = _scene(turn.asked, _known(model_ref, script))
    return _filled(_round(turn, scene), turn), scene.window


def summary(text: str, model_ref: str, script: Path | None) -> tuple[Round, int]:
    """As `next_round`, for a request to sum up a conversation, which is in `text`: what the last
    scene in it says."""
    begins = [found.start() for found in (*_OWN_SCENE.finditer(text), *_SCENE_NAME.finditer(text))]
    scene = _scene(text[max(begins, default=len(text)) :], _known(model_ref, script))
    return scene.summary, scene.window


def window(prompt: str, model_ref: str) -> int:
    """Return how many tokens the model takes in the scene of a prompt; that of one's own file of
    scenes comes to light when it is too much."""
    try:
        return _scene(prompt, _shipped(model_ref)).window
    except ModelFailedError:
        return Scene(()).window


def _known(model_ref: str, script: Path | None) -> dict[str, Scene]:
    try:
        own = _read(script.read_text(encoding="utf-8")) if script else {}
    except (OSError, UnicodeDecodeError) as problem:
        message = f"The file of scenes cannot be read: {problem}"
        raise ModelFailedError("invalid_request", message) from None
    return {**_shipped(model_ref), **own}


@dataclass(frozen=True, slots=True)
class _Turn:
    """What the person asked in the running turn, the answers so far, and the last results."""

    asked: str
    rounds_played: int
    results: tuple[ToolResult, ...]


def _turn(messages: tuple[Message, ...]) -> _Turn:
    """Find the running turn: it begins after the last answer without calls.

    A person who steers adds to it; a steer that names a scene starts that scene.
    """
    talk = [message for message in messages if message.role != "system"]
    ends = [at for at, it in enumerate(talk) if it.role == "assistant" and not it.calls]
    turn = talk[ends[-1] + 1 :] if ends else talk
    persons = [
        at for at, it in enumerate(turn) if it.role == "user" and not it.text.startswith(ASIDE)
    ]
    asides = (it.text for it in turn if it.role == "user" and it.text.startswith(ASIDE))
    gone = [found for text in asides for found in _ROUNDS_GONE.findall(text)]
    named = [at for at in persons if "[dev:" in turn[at].text or "```dev-scene" in turn[at].text]
    start = (named or persons)[-1 if named else 0] if persons else 0
    asked = turn[start].text if persons else ""
    rest = turn[start:]
    last = rest[-1].parts if rest and rest[-1].role == "tool" else ()
    if not last:
        last = next((it.parts for it in reversed(rest) if it.role == "tool"), ())
    return _Turn(
        asked,
        sum(message.role == "assistant" for message in rest) + sum(map(int, gone)),
        tuple(part for part in last if isinstance(part, ToolResult)),
    )


def _round(turn: _Turn, scene: Scene) -> Round:
    if turn.rounds_played < len(scene.round):
        return scene.round[turn.rounds_played]
    last = scene.round[-1]
    return _DONE if last.call or last.fail else last


def _scene(asked: str, scenes: Mapping[str, Scene]) -> Scene:
    if own := _OWN_SCENE.search(asked):
        if len(own[1]) > _OWN_LONGEST or _LONG_KEY.search(own[1]):
            raise ModelFailedError("invalid_request", "The scene is too long, or a key of it is")
        return _converted(own[1], Scene)
    if calls := _asked_calls(asked):
        return Scene(round=(Round(say="I call it.", call=calls), Round(say="It gave: {results}")))
    named = _SCENE_NAME.search(asked)
    name = named[1] if named else "answer"
    if name not in scenes:
        known = ", ".join(sorted(scenes))
        raise ModelFailedError("invalid_request", f"No scene is named {name}; there are: {known}")
    return scenes[name]


def _asked_calls(asked: str) -> tuple[Call, ...]:
    calls = []
    for found in _ASKED_CALL.finditer(asked):
        rest = asked[found.end() :]
        arguments: Any = {}
        if rest.startswith("{"):
            try:
                arguments, _ = json.JSONDecoder().raw_decode(rest)
            except (ValueError, RecursionError) as problem:
                raise ModelFailedError("invalid_request", f"[dev:call …]: {problem}") from None
        calls.append(Call(found[1], arguments))
    return tuple(calls)


def _filled(round_: Round, turn: _Turn) -> Round:
    """Put the person's words and the results where the scene asks for them."""
    words = {
        "{input}": _SCENE_NAME.sub("", turn.asked).strip(),
        "{results}": ", ".join(result.output for result in turn.results),
    }

    def fill(value: Any) -> Any:
        if isinstance(value, str):
            check_length(sum(value.count(name) * len(word) for name, word in words.items()))
            return re.sub(r"\{input\}|\{results\}", lambda found: words[found[0]], value)
        if isinstance(value, dict):
            return {name: fill(item) for name, item in value.items()}
        return [fill(item) for item in value] if isinstance(value, list) else value

    calls = tuple(Call(it.tool, fill(it.arguments), it.raw) for it in round_.call)
    return msgspec.structs.replace(
        round_, think=fill(round_.think), say=fill(round_.say), call=calls
    )


def check_length(characters: int) -> None:
    """Raise `ModelFailedError` `invalid_request` for a text that is too long to be said."""
    if characters > _LONGEST:
        message = f"A text of the scene has more than {_LONGEST} characters"
        raise ModelFailedError("invalid_request", message)


@lru_cache
def _shipped(model_ref: str) -> dict[str, Scene]:
    folder = resources.files("stenograph.engine.models") / "scripts"
    names = ("scenes.toml", f"{model_ref}.toml")
    texts = ((folder / name).read_text(encoding="utf-8") for name in names)
    return {name: scene for text in texts for name, scene in _read(text).items()}


def _read(text: str) -> dict[str, Scene]:
    return _converted(text, dict[str, Scene])


def _converted(text: str, shape: type[_T]) -> _T:
    try:
        return msgspec.convert(tomllib.loads(text), shape)
    except (ValueError, RecursionError, msgspec.ValidationError) as problem:
        raise ModelFailedError("invalid_request", f"The scene cannot be read: {problem}") from None
