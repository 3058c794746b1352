"""Reading an ATIF document: bytes in, a checked `Trajectory` out, or every reason why not.

A clean document costs one typed decode and one linear pass. Only a refused one is looked at again,
to name all that is wrong with it.
"""

from dataclasses import dataclass, field

import msgspec

from stenograph.errors import InvalidInputError
from stenograph.trajectories.atif import rules, versions
from stenograph.trajectories.atif.findings import Findings, Problem
from stenograph.trajectories.atif.format import Json, Step, Trajectory
from stenograph.trajectories.atif.reading import collector_paused, read_as, read_json
from stenograph.trajectories.atif.shapes import misfits, set_aside
from stenograph.trajectories.atif.step_rules import check_steps

#: Problems that an error carries along; the message says how many there were.
MAX_REPORTED = 100

_NOTHING: dict[str, Json] = {}
_decode = msgspec.json.Decoder(Trajectory).decode


@dataclass(frozen=True, slots=True)
class Parsed:
    """A document within the format, and what whoever imports it should know."""

    trajectory: Trajectory
    warnings: list[str]
    #: Lone surrogates that became U+FFFD.
    replaced_characters: int
    #: The label as it came, `ATIF-v1.n`.
    version: str
    #: Of versions later than 1.8: fields unknown here, by JSON pointer, taken out of the document.
    unknown: dict[str, Json] = field(default_factory=dict)


def parse(data: bytes) -> Parsed:
    """Read a document of ATIF 1.0 to 1.8, or leniently of a later 1.x.

    Ids: siblings of one `trajectory_id` are refused; a reference to an id that is not embedded, or
    (up to 1.6) to a session alone, is kept and warned about. A call id used twice is warned about.
    Features newer than the label are read, with a warning: real producers label too low.

    Raises InvalidInputError. `problems` in its details is a list of `{"pointer", "message"}`.
    """
    trajectory: Trajectory | None
    try:
        with collector_paused(len(data)):
            read = read_as(data, _decode)
            findings = rules.check(read.value)
        trajectory, unknown, replaced = read.value, _NOTHING, read.replaced_characters
    except msgspec.ValidationError:
        untyped = read_json(data)
        replaced = untyped.replaced_characters
        trajectory, unknown, findings = _examine(untyped.value)
    if findings.problems or trajectory is None:
        raise _refusal(findings.problems)
    if replaced:
        findings.warn("", f"{replaced} lone surrogates became U+FFFD")
    for pointer in unknown:
        findings.warn(pointer, f"{trajectory.schema_version} fields unknown here were set aside")
    return Parsed(
        trajectory=trajectory,
        warnings=findings.warnings(),
        replaced_characters=replaced,
        version=trajectory.schema_version,
        unknown=unknown,
    )


def problems(value: Json) -> list[Problem]:
    """Return why a JSON value is no ATIF document; empty when it is one.

    All of them: where types are wrong, each departure, together with what the rules say of the
    steps that can be read; where types are right, all that the rules say. A label that is no known
    version is the only problem named, since nothing else could be meant by the reader.
    """
    return _examine(value)[2].problems


def _examine(value: Json) -> tuple[Trajectory | None, dict[str, Json], Findings]:
    findings = Findings()
    unknown: dict[str, Json] = {}
    if not isinstance(value, dict):
        findings.problems += misfits(value)
    elif problem := versions.label_problem(value.get("schema_version")):
        findings.refuse("/schema_version", problem)
    elif _too_deep(value):
        findings.refuse("", f"children lie more than {rules.MAX_DEPTH} levels deep")
    else:
        value = set_aside(value, unknown)
        try:
            trajectory = msgspec.convert(value, Trajectory)
        except msgspec.ValidationError:
            findings.problems += misfits(value)
            _check_readable_steps(findings, value, "")
        else:
            return trajectory, unknown, rules.check(trajectory)
    return None, unknown, findings


def _check_readable_steps(findings: Findings, document: Json, at: str) -> None:
    if not isinstance(document, dict):
        return
    if isinstance(steps := document.get("steps"), list):
        check_steps(findings, map(_step, steps), at)
    if isinstance(children := document.get("subagent_trajectories"), list):
        for index, child in enumerate(children):
            _check_readable_steps(findings, child, f"{at}/subagent_trajectories/{index}")


def _step(value: Json) -> Step | None:
    try:
        return msgspec.convert(value, Step)
    except msgspec.ValidationError:
        return None


def _too_deep(document: Json) -> bool:
    """Whether children lie too deep to be walked; level by level, so no stack grows."""
    level = [document]
    for _ in range(rules.MAX_DEPTH + 1):
        nested = [d.get("subagent_trajectories") for d in level if isinstance(d, dict)]
        level = [child for children in nested if isinstance(children, list) for child in children]
        if not level:
            return False
    return True


def _refusal(found: list[Problem]) -> InvalidInputError:
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return InvalidInputError(
        f"This is no ATIF document: {found[0]}{more}",
        problems=[
            {"pointer": problem.pointer, "message": problem.message}
            for problem in found[:MAX_REPORTED]
        ],
        problem_count=len(found),
    )
