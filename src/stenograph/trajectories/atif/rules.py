"""The rules of ATIF for documents and their children (`atif.md` sections 1 to 3 and 6).

Refused: an unknown version, a missing session id up to 1.6, children that cannot be told apart or
lie too deep, a reference that names neither id nor path (legal up to 1.6), negative totals. Warned
about and kept: a reference to a child that is not there, a child that nothing refers to or that has
its parent's id, totals that the steps contradict, fields newer than the document's label.
"""

from itertools import chain

from stenograph.trajectories.atif import totals, versions
from stenograph.trajectories.atif.findings import Findings
from stenograph.trajectories.atif.format import Json, Trajectory
from stenograph.trajectories.atif.step_rules import Refs, check_number, check_steps

#: Levels of children below the root document.
MAX_DEPTH = 32
#: Arrays and objects inside one another in `extra`, `arguments` and `tool_definitions`.
MAX_FREE_NESTING = 100

_TOTALS = (
    "total_prompt_tokens",
    "total_completion_tokens",
    "total_cached_tokens",
    "total_cost_usd",
    "total_steps",
)


def check(trajectory: Trajectory) -> Findings:
    """Hold a document and its children to the rules, in time linear in its size."""
    findings = Findings()
    _check_document(findings, trajectory, at="", depth=0, above=frozenset())
    if _deeper_than(findings.free, MAX_FREE_NESTING):
        findings.refuse("", f"free-form data is nested more than {MAX_FREE_NESTING} levels deep")
    return findings


def _check_document(
    findings: Findings, document: Trajectory, at: str, depth: int, above: frozenset[str]
) -> None:
    """Check one document, then its children. `above`: ids that the documents above embed."""
    label = document.schema_version
    if problem := versions.label_problem(label):
        findings.refuse(f"{at}/schema_version", problem)
    minor = versions.minor(label)
    legacy = minor is not None and minor <= 6
    if legacy and document.session_id is None:
        findings.refuse(f"{at}/session_id", "this field is required up to ATIF-v1.6")
    refs = check_steps(findings, document.steps, at)
    children = document.subagent_trajectories or []
    ids = above | {child.trajectory_id for child in children if child.trajectory_id is not None}
    _check_refs(findings, refs, ids, legacy)
    _check_totals(findings, document, f"{at}/final_metrics")
    for feature, since in versions.newer_features(document).items():
        findings.warn(f"{at}/schema_version", f"{label} has no {feature}: 1.{since} brought it")
    findings.free += [document.extra, document.agent.extra, document.agent.tool_definitions]
    if children and depth == MAX_DEPTH:
        findings.refuse(
            f"{at}/subagent_trajectories", f"children lie more than {MAX_DEPTH} levels deep"
        )
        return
    named = {ref.trajectory_id for _, ref in refs}
    seen: set[str] = set()
    for index, child in enumerate(children):
        here = f"{at}/subagent_trajectories/{index}"
        _check_identity(findings, child.trajectory_id, document.trajectory_id, named, seen, here)
        _check_document(findings, child, here, depth + 1, ids)


def _check_identity(
    findings: Findings,
    own: str | None,
    parents: str | None,
    named: set[str | None],
    seen: set[str],
    here: str,
) -> None:
    if own is None:
        findings.refuse(f"{here}/trajectory_id", "this field is required of an embedded document")
        return
    if own in seen:
        findings.refuse(f"{here}/trajectory_id", "another child of this document has this id")
    seen.add(own)
    if own == parents:
        findings.warn(f"{here}/trajectory_id", "a child has the id of its parent")
    if own not in named:
        findings.warn(here, "no step of its parent refers to this child")


def _check_refs(findings: Findings, refs: Refs, ids: frozenset[str], legacy: bool) -> None:
    for at, ref in refs:
        if ref.extra:
            findings.free.append(ref.extra)
        if ref.trajectory_path is not None:
            continue
        if ref.trajectory_id is None:
            if legacy and ref.session_id is not None:
                findings.warn(at, "this names only a session; it stays unresolved")
            else:
                findings.refuse(at, "expected trajectory_id or trajectory_path")
        elif ref.trajectory_id not in ids:
            findings.warn(at, "no document of this trajectory_id is embedded here")


def _check_totals(findings: Findings, document: Trajectory, at: str) -> None:
    claim = document.final_metrics
    if claim is None:
        return
    for name in _TOTALS:
        check_number(findings, getattr(claim, name), f"{at}/{name}")
    findings.free.append(claim.extra)
    for name, sentence in totals.contradictions(document):
        findings.warn(f"{at}/{name}", f"{sentence}; only the steps are counted")


def _deeper_than(values: list[Json], limit: int) -> bool:
    """Whether any of these values nests deeper than `limit`; level by level, so no stack grows."""
    level = values
    for _ in range(limit + 1):
        objects = [value for value in level if value.__class__ is dict]
        arrays = [value for value in level if value.__class__ is list]
        if not objects and not arrays:
            return False
        members = chain(chain.from_iterable(map(dict.values, objects)), *arrays)
        level = [m for m in members if m.__class__ is dict or m.__class__ is list]
    return True
