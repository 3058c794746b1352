"""What is found wrong with a document: problems refuse it, warnings go to who imports it."""

from dataclasses import dataclass, field

from stenograph.trajectories.atif.format import Json


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a document is refused; `pointer` is the place (RFC 6901, `""` for the whole)."""

    pointer: str
    message: str

    def __str__(self) -> str:
        return f"{self.pointer or 'document'}: {self.message}"


@dataclass(slots=True)
class Findings:
    """Problems as they come; warnings once each, with the first place and a count."""

    problems: list[Problem] = field(default_factory=list)
    _warned: dict[str, tuple[str, int]] = field(default_factory=dict)
    #: Free-form values that were met; their nesting is looked at together, at the end.
    free: list[Json] = field(default_factory=list)

    def refuse(self, pointer: str, message: str) -> None:
        self.problems.append(Problem(pointer, message))

    def warn(self, pointer: str, message: str) -> None:
        first, count = self._warned.get(message, (pointer, 0))
        self._warned[message] = (first, count + 1)

    def warnings(self) -> list[str]:
        """Return a sentence for each kind of warning: `<pointer> and 3 more: <message>`."""
        return [
            f"{pointer or 'document'}{f' and {count - 1} more' if count > 1 else ''}: {message}"
            for message, (pointer, count) in self._warned.items()
        ]
