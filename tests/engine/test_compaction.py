"""Conversations that outgrow a model's window: summed up, trimmed, and whole in the record."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from engine.driving import Driven, scene
from engine.test_history import told
from engine.test_rounds import account, facts, tasks, valid
from engine.test_turns import candidates
from stenograph.accounts.access import Caller
from stenograph.conversations import conversation as conversations
from stenograph.conversations import workspace as workspaces
from stenograph.conversations.access import Conversation
from stenograph.engine.work import load
from stenograph.retention.integrity import check
from stenograph.runs import request as sealed
from stenograph.runs import transcript
from stenograph.runs.transcript import RoundLine
from stenograph.storage.database import Tx


def long_scene(rounds: int = 9, *, window: int = 3_000, more: str = "", say: int = 40) -> str:
    """A turn of `rounds` calls, each of which says some 900 characters, then an answer."""
    calls = [
        f'[[round]]\nthink = "Step {number}."\nsay = "Round {number} goes on a little. "\n'
        f'repeat = {say}\ncall = [{{ tool = "read", arguments = {{ path = "f{number}" }} }}]'
        for number in range(rounds)
    ]
    answer = '[[round]]\nsay = "All is done: {results}"\n'
    return scene("\n".join([f"window = {window}", more, *calls, answer]))


SUMMARY = '[summary]\nthink = "What matters?"\nsay = "Files f0 and on are being read."\n'
ANSWER = "All is done: the content of f8"


def events(driven: Driven, kind: str) -> list[dict[str, Any]]:
    rows = driven.rows("SELECT payload FROM events WHERE type = :kind ORDER BY id", kind=kind)
    return [json.loads(row[0]) for row in rows]


def requests(driven: Driven) -> list[list[dict[str, Any]]]:
    """What each answered round was told, in order; summaries' own requests left out."""
    rows = driven.rows(
        "SELECT i.id FROM invocations i LEFT JOIN tasks k ON k.id = i.task_id"
        " WHERE i.status = 'completed' AND coalesce(k.name, '') <> 'compaction' ORDER BY i.id"
    )
    return [entries(driven, row[0]) for row in rows]


def entries(driven: Driven, invocation_id: int) -> list[dict[str, Any]]:
    return driven.read(lambda tx: sealed.read(tx, invocation_id)).entries


def first_text(told: list[dict[str, Any]]) -> str:
    return str(told[0]["parts"][0]["text"])


def compactions(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        step for step in document["steps"]
        if step.get("extra", {}).get("context_management", {}).get("type") == "compaction"
    ]  # fmt: skip


def test_a_turn_that_outgrows_the_window_is_summed_up_and_goes_on(driven: Driven) -> None:
    session_id = driven.open(long_scene(more=SUMMARY))
    driven.settle()
    found = facts(driven, session_id)
    assert (found.status, found.outcome) == ("exit", "success")
    assert driven.rows("SELECT content FROM variants") == [(ANSWER,)]
    # Every call was made once, whatever the model was told again.
    assert [made[1]["path"] for made in driven.tools.made] == [f"f{n}" for n in range(9)]
    document = valid(driven, session_id)
    steps = compactions(document)
    assert steps
    for step in steps:
        assert step["source"] == "system"
        assert step["extra"]["context_management"]["boundary"] == "replace"
        assert step["observation"]["results"] == [{"content": "Files f0 and on are being read."}]
        # Before it stands the call that made it, and behind it the round that it was made for.
        at = document["steps"].index(step)
        made, after = document["steps"][at - 1], document["steps"][at + 1]
        assert made["source"] == after["source"] == "agent"
        assert made["extra"]["stenograph"]["kind"] == "compaction"
        assert made["metrics"]["prompt_tokens"] > 0
        assert after["message"].startswith(("Round", "All"))
    # Nothing is lost: every round is in the document, as it was said.
    said = [step["message"] for step in document["steps"] if step["source"] == "agent"]
    assert [it for it in said if it.startswith("Round")] == [
        f"Round {n} goes on a little. " * 40 for n in range(9)
    ]
    assert (
        account(driven, session_id).input_tokens
        == (document["final_metrics"]["total_prompt_tokens"])
    )
    assert len(events(driven, "context_compacted")) == len(steps)
    assert events(driven, "context_trimmed") == []
    assert check(driven.database) == []


def test_after_a_compaction_a_model_is_told_the_summary_the_prompt_and_the_newest_rounds(
    driven: Driven,
) -> None:
    driven.open(long_scene(12, more=SUMMARY))
    driven.settle()
    compacted = [it for it in requests(driven) if "<summary>" in first_text(it)]
    first = compacted[0]
    assert [entry["role"] for entry in first] == ["user", "user", "assistant", "tool"]
    assert "Files f0 and on are being read." in first_text(first)
    assert first_text(first).startswith("[stenograph] This conversation was compacted")
    assert first[1]["parts"][0]["text"].startswith("```dev-scene")
    # The newest round is whole, with its thoughts and its result.
    kinds = [part["type"] for part in first[2]["parts"]]
    assert kinds == ["reasoning", "text", "tool_call"]
    assert first[3]["parts"][0]["output"].startswith("the content of f")
    # What the next is told begins as this one does, so that a provider's cache of it is good.
    assert compacted[1][: len(first)] == first


def test_the_summing_up_is_hidden_and_no_round_of_the_budget(driven: Driven) -> None:
    options = {"execution_budget": {"steps_max": 10}}
    session_id = driven.open(long_scene(more=SUMMARY), options=options)
    driven.settle()
    assert facts(driven, session_id).outcome == "success"
    keys = [(it[0], it[2]) for it in tasks(driven, session_id) if it[1] == "model_task"]
    assert ("compaction-1", "completed") in keys
    shown = driven.rows(
        "SELECT transcript_visibility, mainline, parent_id IS NULL FROM tasks"
        " WHERE name = 'compaction'"
    )
    assert set(shown) == {("hidden", 0, False)}
    [(made,)] = driven.rows("SELECT selected_invocation_id FROM tasks WHERE key = 'compaction-1'")
    rounds = driven.read(lambda tx: _transcript(tx, driven))
    assert any(it.compacted for it in rounds[1:])
    assert not rounds[0].compacted
    assert all(it.key.startswith("r") for it in rounds)
    system, record = entries(driven, made)
    assert (system["role"], record["role"]) == ("system", "user")
    assert "[result of read] the content of f0" in record["parts"][0]["text"]


def test_a_conversation_of_many_turns_begins_with_its_summary(driven: Driven) -> None:
    session_id = driven.open(long_scene(2, window=1_800, more=SUMMARY))
    driven.settle()
    for text in ("one", "two"):
        driven.say(session_id, scene(
            f'window = 1800\n{SUMMARY}[[round]]\nsay = "{text} and so on, for a while. "\n'
            "repeat = 70\n"
        ))  # fmt: skip
        driven.settle()
    assert events(driven, "context_compacted")
    document = valid(driven, session_id)
    last = requests(driven)[-1]
    assert "<summary>" in first_text(last)
    assert not any("Round 0" in json.dumps(entry) for entry in last)
    assert [s["message"] for s in document["steps"] if s["source"] == "user"][1].startswith("```")
    assert check(driven.database) == []


def _transcript(tx: Tx, driven: Driven) -> Sequence[RoundLine]:
    work = load(tx, candidates(driven)[0][1])
    assert work is not None
    assert work.run is not None
    return transcript.page(tx, work.run, size=9).rounds


FAILS = '[summary]\nsay = "Half of it"\nfail = {{ kind = "{kind}" }}\n'


@pytest.mark.parametrize("kind", ["refused", "overloaded"])
def test_without_a_summary_the_oldest_is_left_out_and_the_run_goes_on(
    driven: Driven, kind: str
) -> None:
    session_id = driven.open(long_scene(more=FAILS.format(kind=kind)))
    driven.settle()
    assert facts(driven, session_id).outcome == "success"
    assert [made[1]["path"] for made in driven.tools.made] == [f"f{n}" for n in range(9)]
    trimmed = events(driven, "context_trimmed")
    assert trimmed
    assert all(it["left_out"] > 0 for it in trimmed)
    assert events(driven, "context_compacted") == []
    # Tried twice, each as often as it is worth, and never again in this run.
    failed = [it for it in tasks(driven, session_id) if it[3] == "compaction"]
    assert [it[2] for it in failed] == ["failed", "failed"]
    assert len(driven.waits) == (6 if kind == "overloaded" else 0)
    last = requests(driven)[-1]
    note = next(e for e in last if "Left out here" in json.dumps(e))
    assert note["role"] == "user"
    assert last[-1]["parts"][0]["output"] == "the content of f8"
    # Every attempt is in the account, and what was left out is in the record.
    document = valid(driven, session_id)
    assert compactions(document) == []
    assert sum(s["message"].startswith("Round") for s in document["steps"]) == 9
    assert check(driven.database) == []


def test_a_session_may_forbid_summaries(driven: Driven) -> None:
    policy = {"options": {"session_policy": {"compaction": False}}}
    session_id = driven.open(long_scene(more=SUMMARY), **policy)
    driven.settle()
    assert facts(driven, session_id).outcome == "success"
    assert not [it for it in tasks(driven, session_id) if it[3] == "compaction"]
    assert events(driven, "context_trimmed")


#: Characters that JSON writes as six: the dev model counts more than we believe.
DENSE = "\\u0001" * 500


def test_a_model_that_finds_it_too_long_is_asked_again_after_a_summary(driven: Driven) -> None:
    session_id = driven.open(scene(f'window = 6000\n[[round]]\nsay = "{DENSE}"\nrepeat = 4\n'))
    driven.settle()
    driven.say(session_id, scene(f'window = 2800\n{SUMMARY}[[round]]\nsay = "Heard."\n'))
    driven.settle()
    assert driven.rows("SELECT content FROM variants ORDER BY id DESC LIMIT 1") == [("Heard.",)]
    failures = driven.rows(
        "SELECT k.key, d.rest FROM invocation_details d"
        " JOIN invocations i ON i.id = d.invocation_id JOIN tasks k ON k.id = i.task_id"
        " WHERE i.status = 'failed' ORDER BY i.id"
    )
    assert all("context_too_long" in rest for _, rest in failures)
    # The round once, and the summary until little enough of the record was told for it.
    assert [key for key, _ in failures[:2]] == ["r1", "compaction-1"]
    assert "r1" not in [key for key, _ in failures[1:]]
    assert len(events(driven, "context_compacted")) == 1
    assert "<summary>" in told(driven)[0][1]
    valid(driven, session_id)
    assert check(driven.database) == []


def test_a_prompt_that_alone_is_too_long_is_the_turns_failure(driven: Driven) -> None:
    session_id = driven.open(scene("window = 300\n[[round]]\nsay = 'Never.'\n") + "word " * 400)
    driven.settle()
    found = facts(driven, session_id)
    assert (found.status, found.reason_code) == ("error", "context_too_long")
    assert found.error_class == "request_too_large"


def test_a_huge_result_is_cut_in_the_request_and_whole_in_the_record(driven: Driven) -> None:
    session_id = driven.open(
        scene('window = 2000\n[[round]]\ncall = [{ tool = "big" }]\n[[round]]\nsay = "Seen."\n')
    )
    driven.settle()
    assert facts(driven, session_id).outcome == "success"
    assert "characters left out" in told(driven)[-1][1]
    assert len(told(driven)[-1][1]) < 2_000
    assert driven.rows("SELECT length(output) FROM task_details WHERE output IS NOT NULL") == [
        (1_000_000,)
    ]


def test_of_a_direct_reply_the_oldest_turns_are_left_out(driven: Driven) -> None:
    conversation = driven.write(lambda tx: _conversation(tx, driven.owner))
    for number in range(4):
        text = f'window = 900\n[[round]]\nsay = "Answer {number} goes on. "\nrepeat = 50\n'
        driven.ask(conversation, scene(text), model="dev/small")
        driven.settle()
    assert driven.rows("SELECT source, status FROM variants") == [("inference", "completed")] * 4
    trimmed = events(driven, "context_trimmed")
    assert trimmed
    assert all("task_key" not in it for it in trimmed)
    last = told(driven)
    assert last[0][1].startswith("[stenograph] Left out here")
    assert not any("Answer 0" in text for _, text in last)
    assert any("Answer 2" in text for _, text in last)
    assert check(driven.database) == []


def _conversation(tx: Tx, caller: Caller) -> Conversation:
    workspace = workspaces.create(tx, caller, name="w", access_mode="account_wide")
    return conversations.create(tx, caller, workspace, title=None)


def test_a_reasoning_that_another_provider_wrote_is_said_to_be_left_out(driven: Driven) -> None:
    session_id = driven.open("[dev:files]")
    driven.settle()
    driven.write(
        lambda tx: tx.run(
            "UPDATE invocation_details SET reasoning_trace ="
            ' \'{"provider_id": "other", "answer": {}}\' WHERE reasoning_trace IS NOT NULL'
        )
    )
    driven.say(session_id, "[dev:files]")
    driven.settle()
    assert events(driven, "reasoning_replay_downgraded") == [
        {"task_key": "r1", "provider_id": "dev", "messages": 2}
    ]
