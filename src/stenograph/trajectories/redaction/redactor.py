"""Redaction of one export: strings, free-form JSON and ATIF documents, with references kept."""

from collections import Counter
from collections.abc import Collection, Iterable
from copy import copy
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

from stenograph.trajectories.atif.format import Json
from stenograph.trajectories.redaction import doubts
from stenograph.trajectories.redaction.masking import (
    Tier,
    compile_bytes,
    count_markers,
    is_all_markers,
    mask,
    rules_for,
)
from stenograph.trajectories.redaction.shapes import CREDENTIAL_NAME, SCHEME

S = TypeVar("S", bound=msgspec.Struct)
#: What a place in a document may hold: `fixed` one of few words or a time, `reference` a name that
#: stands elsewhere too, `typed` what the schema says, `free` and `extra` any JSON.
Role: TypeAlias = Literal["fixed", "media", "reference", "typed", "extra", "free"]

_EXTRA_REFERENCES = frozenset(
    {
        "tool_call_id",
        "source_call_id",
        "parent_tool_call_id",
        "trajectory_id",
        "session_id",
        "trajectory_path",
        "continued_trajectory_ref",
    }
)
_FIELD_ROLES: dict[str, Role] = {
    **dict.fromkeys(("schema_version", "source", "type", "timestamp"), "fixed"),
    **dict.fromkeys((*_EXTRA_REFERENCES, "path"), "reference"),
    "media_type": "media",
    "extra": "extra",
}
_MEDIA_TYPE = compile_bytes(
    b"image/(?:jpeg|png|gif|webp)|audio/(?:mpeg|mp3|mp4|x-wav|wav|ogg|flac|webm|aac)"
)

#: What an alias begins with; the second where a secret is part of the first.
_STEMS = ("redacted-ref-", "r-")

_CREDENTIAL_MARKER = "[redacted-credential]"
_CREDENTIAL_KEY = compile_bytes(CREDENTIAL_NAME + b"$")
_SCHEME = compile_bytes(SCHEME)


class Redactor:
    """Masks the strings of one export, counting markers and naming references as it goes.

    Every method takes whole strings: a secret that the caller cut in two is not found. Make one
    for each export. Threads may share one that only masks text (logs), not one that is asked for
    references.
    """

    __slots__ = ("_aliases", "_last_alias", "_rules", "_stem", "counts", "tier")

    def __init__(self, secrets: Collection[str], tier: Tier) -> None:
        """`secrets`: the run's values; those under `MIN_SECRET_LENGTH` are not looked for."""
        self.tier = tier
        #: How often each marker was put in: `extra.fidelity.redactions`.
        self.counts: Counter[str] = Counter()
        self._rules = rules_for(secrets, tier)
        self._aliases: dict[str, str] = {}
        self._last_alias = 0
        self._stem = next((stem for stem in _STEMS if self._masked(stem) == stem), _STEMS[-1])

    def clean(self, encoded: bytes) -> bool:
        """Tell that nothing in `encoded`, JSON as msgspec writes it, needs masking.

        False means that something may: `value` and `struct` then find out.
        """
        if self.tier == "none":
            return True
        if any(group.may_match(encoded) for group in self._rules):
            return False
        return f'"{self._stem}'.encode() not in encoded

    def text(self, text: str) -> str:
        """Return `text` with markers for what this tier masks; itself when that is nothing."""
        return self._counted(text, self._masked(text))

    def reference(self, name: str) -> str:
        """Return `name`, or if masking would change it an alias: the same wherever it stands.

        A genuine name that looks like an alias gets one too, so that two names never become one.
        """
        if self.tier == "none":
            return name
        if name not in self._aliases:
            if not name.startswith(self._stem) and self._masked(name) == name:
                return name
            self._aliases[name] = self._fresh_alias()
        return self._aliases[name]

    def value(self, value: Json) -> Json:
        """Return a copy of free-form JSON with its strings, keys and numbers masked.

        Keys that come to be equal are told apart by `-2`, `-3` …. A number whose JSON spelling
        needs masking becomes the marker. In the standard tier a string under a key that names a
        credential (`password`, `x-api-key`) goes whole.
        """
        return self._walk(value, "free")

    def extra_value(self, extra: Json) -> Json:
        """As `value`, for an `extra` of a document: what names something there gets its alias."""
        return self._walk(extra, "extra")

    def struct(self, struct: S) -> S:
        """Return a masked copy of any part of an ATIF document (`atif.format`).

        Numbers, times and fixed words that the schema asks for stay; references get aliases.
        """
        copied: S = self._walk(struct, "typed")
        return copied

    def _masked(self, text: str) -> str:
        raw = text.encode("utf-8", "surrogatepass")
        masked = mask(raw, self._rules)
        return text if masked is raw else masked.decode("utf-8", "surrogatepass")

    def _counted(self, text: str, masked: str) -> str:
        if masked is not text:
            for marker, added in (count_markers(masked) - count_markers(text)).items():
                self.counts[marker] += added
        return masked

    def _fresh_alias(self) -> str:
        while True:
            self._last_alias += 1
            alias = f"{self._stem}{self._last_alias}"
            if self._masked(alias) == alias:
                return alias

    def _walk(self, root: Any, role: Role) -> Any:
        # By hand rather than by recursion: the depth of a document is its sender's choice.
        holder = [root]
        todo: list[tuple[Any, Any, Role]] = [(holder, 0, role)]
        while todo:
            owner, slot, role = todo.pop()
            if isinstance(owner, msgspec.Struct):
                masked, parts = self._shallow(getattr(owner, slot), role)
                setattr(owner, slot, masked)
            else:
                masked, parts = self._shallow(owner[slot], role)
                owner[slot] = masked
            todo.extend((masked, part, part_role) for part, part_role in reversed(parts))
        return holder[0]

    def _shallow(self, value: Any, role: Role) -> tuple[Any, list[tuple[Any, Role]]]:
        """Mask what `value` is itself; return it with its parts' slots and roles, still to do."""
        if isinstance(value, str):
            return self._string(value, role), []
        if isinstance(value, msgspec.Struct):
            fields = value.__struct_fields__
            return copy(value), [(name, _FIELD_ROLES.get(name, "typed")) for name in fields]
        if isinstance(value, dict):
            masked = dict(zip(self._keys(value), map(self._entry, value.items()), strict=True))
            roles = [self._key_role(key, role) for key in value]
            return masked, list(zip(masked, roles, strict=True))
        if isinstance(value, list | tuple):
            return list(value), [(index, role) for index in range(len(value))]
        if role not in ("typed", "fixed") and type(value) in (int, float):
            return self._number(value), []
        return value, []

    def _key_role(self, key: str, parent: Role) -> Role:
        return "reference" if parent == "extra" and key in _EXTRA_REFERENCES else "free"

    def _entry(self, item: tuple[str, Json]) -> Json:
        """Return an object's value, masked if the key names a credential and it looks like one."""
        key, value = item
        if self.tier != "standard" or isinstance(value, bool) or not isinstance(value, str | int):
            return value
        name = key.encode("utf-8", "surrogatepass")
        if (named := _CREDENTIAL_KEY.search(name)) is None:
            return value
        raw = str(value).encode("utf-8", "surrogatepass")
        scheme = _SCHEME.match(raw)
        kept = scheme.end() if scheme and isinstance(value, str) else 0
        before = name + b'="'
        assigned = before + raw[kept:]
        if (
            is_all_markers(raw[kept:])
            or not doubts.is_assigned(assigned, named.start(), len(before), len(assigned))
            or (b" " in raw[kept:] and not named.group().lower().startswith(b"p"))
        ):
            return value
        body = raw[kept:].decode("utf-8", "surrogatepass")
        marker = next(iter(count_markers(self._masked(body))), _CREDENTIAL_MARKER)
        return raw[:kept].decode() + self._counted(body, marker)

    def _keys(self, mapping: dict[str, Json]) -> Iterable[str]:
        masked = {key: self.text(key) for key in mapping}
        taken = {key for key, new in masked.items() if key == new}
        last: Counter[str] = Counter()
        for key, new in masked.items():
            if key != new:
                masked[key] = self._distinct(new, taken, last)
                taken.add(masked[key])
        return masked.values()

    def _distinct(self, key: str, taken: Collection[str], last: Counter[str]) -> str:
        candidate = base = key
        while candidate in taken:
            last[base] = max(last[base], 1) + 1
            candidate = f"{base}-{last[base]}"
            if self._masked(candidate) != candidate:
                candidate = base = self._masked(candidate)
        return candidate

    def _string(self, value: str, role: Role) -> str:
        if role == "fixed" or (role == "media" and _MEDIA_TYPE.fullmatch(value) is not None):
            return value
        if role == "reference":
            return self.reference(value)
        return self.text(value)

    def _number(self, value: float) -> Json:
        spelled = msgspec.json.encode(value).decode()
        masked = self._masked(spelled)
        if masked is spelled:
            return value
        return self._counted(spelled, next(iter(count_markers(masked))))
