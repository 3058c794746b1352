"""Genuine logs, imported and read page by page: the reasoning and the calls that the model server
saw (`../shared/corpus`, whose `meta.json` was written on the server's side)."""

import hashlib
import json
from collections import Counter
from pathlib import Path

import pytest

from people import make_org
from serving import Api
from stenograph.trajectories.importers.discovery import find, read_source
from stenograph.trajectories.recording.record import record

CORPUS = Path(__file__).parents[3].parent / "shared" / "corpus"
CASES = sorted(
    f"{program}/{path.parent.name}"
    for program in ("claude", "codex")
    for path in (CORPUS / program).glob("*/meta.json")
)

pytestmark = pytest.mark.skipif(not CASES, reason="the corpus of genuine logs is not here")


@pytest.fixture
def imported(sqlite_database, settings, sealer):
    """Import a case; returns the API and the path of the workspace it lies in."""
    org = make_org(sqlite_database)
    api = Api(sqlite_database, org, settings, sealer)

    def take(case):
        folder = CORPUS / case / ("projects" if case.startswith("claude") else "sessions")

        def keep(tx):
            for candidate in find([folder]):
                if candidate.format is not None:
                    for draft in read_source(candidate):
                        record(tx, org.owner, draft)

        sqlite_database.write(keep)
        (home,) = api.get("/agent_api/v1/workspaces").json()["workspaces"]
        return api, f"/agent_api/v1/workspaces/{home['public_id']}"

    yield take
    api.close()


def conversations(api, home):
    """The paths of every conversation, subagents' included."""
    waiting = [f"{home}/conversations"]
    while waiting:
        for one in api.get(waiting.pop(), params={"limit": 100}).json()["conversations"]:
            path = f"{home}/conversations/{one['public_id']}"
            waiting.append(f"{path}/children")
            yield path


def backward(api, path, name, **query):
    """Read all pages of a backward list, in order of creation."""
    found, before = [], ""
    while before is not None:
        page = api.get(path, params={"before": before} | query).json()
        found = page[name] + found
        before = page["pagination"]["next_before"]
    return found


def turns(api, path):
    """The turns of a conversation that it does not inherit, each with its path."""
    after = -1
    while True:
        query = {} if after < 0 else {"after_position": after}
        page = api.get(f"{path}/turns", params=query | {"limit": 7}).json()
        if not page["turns"]:
            return
        after = page["pagination"]["after_position"]
        yield from (turn for turn in page["turns"] if not turn["inherited"])


@pytest.mark.parametrize("case", CASES)
def test_every_thought_and_every_call_is_on_a_page_once(imported, case):
    api, home = imported(case)
    truth = json.loads((CORPUS / case / "meta.json").read_bytes())["truth"]
    thoughts: list[str] = []
    called = 0
    for path in conversations(api, home):
        for turn in turns(api, path):
            variant = turn["active_variant"]
            reasoning = (
                f"{path}/turns/{turn['public_id']}/variants/{variant['public_id']}/reasoning"
            )
            items = backward(api, reasoning, "items", limit=7)
            thoughts += [item["text"] for item in items if item["available"]]
            run = f"{home}/runs/{variant['run_public_id']}/transcript"
            rounds = backward(api, run, "rounds", limit=7)
            assert [r["task_key"] for r in rounds] == [item["task_key"] for item in items]
            made = [call for r in rounds for call in r["calls"]["items"]]
            # What a script of the model's calls is told apart from what the model called.
            called += sum("script_task_key" not in call for call in made)
    expected = truth["reasoning_texts"]
    if isinstance(expected, list):
        pieces = [piece for text in thoughts for piece in text.split("\n\n")]
        assert Counter(pieces) == Counter("\n\n".join(expected).split("\n\n") if expected else [])
    else:
        assert len(thoughts) == expected["count"]
        digest = hashlib.sha256("\n".join(thoughts).encode()).hexdigest()
        assert digest == expected["sha256_joined_by_newline"]
    assert called == truth["tool_calls"]
