"""A run as a whole: its graph, drawn and counted, and its phases (agent-api.md 4.3)."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import story
from stenograph.runs import graph, invocation, mermaid, run, task
from stenograph.runs.graph import Graph, Node
from stenograph.runs.invocation import Usage
from stenograph.runs.task import TERMINAL, Call

#: One character of a label: a letter or digit of any script, one of a few marks, or a number.
CHARACTER = r"(?:[^\W]|[ .,:_…-]|#\d+;)"
SHAPES = (r'\["L"\]', r'\("L"\)', r'\{\{"L"\}\}', r'\[\["L"\]\]')
#: The lines that a flowchart has here; Mermaid's own parser takes each of them.
LINES = re.compile(
    r"flowchart TD"
    rf"|  n\d+(?:{'|'.join(shape.replace('L', CHARACTER + '+') for shape in SHAPES)})(?::::hidden)?"
    r"|  n\d+ (?:-\.->|-->) n\d+"
    r"|  classDef hidden stroke-dasharray: 4 4"
)
LABEL = re.compile(r'^  (n\d+)\W+?"(.*)"')


@pytest.fixture
def where(database, org):
    return story.place(database, org.owner)


def labels(text):
    """The labels of a flowchart, by node, as Mermaid reads them."""
    found = {}
    for line in text.splitlines():
        if match := LABEL.match(line):
            found[match[1]] = re.sub(r"#(\d+);", lambda number: chr(int(number[1])), match[2])
    return found


def test_a_run_is_drawn_with_what_is_hidden(api, database, where):
    said = story.branched(database, where)
    found = api.get(where.run(said) + "/graph").json()
    assert list(found) == ["nodes", "edges", "mermaid"]
    assert found["nodes"][1] == {
        "task_key": "r2t0",
        "kind": "tool_task",
        "status": "completed",
        "visibility": "collapsed",
        "mainline": True,
        "name": "delegate_task",
    }
    assert [(n["task_key"], n["visibility"]) for n in found["nodes"]] == [
        ("r1", "visible"),
        ("r2t0", "collapsed"),
        ("r2t1", "collapsed"),
        ("r2t2", "hidden"),
        ("r2t0-model-1", "visible"),
        ("internal-1", "hidden"),
        ("r2", "visible"),
        ("r3", "collapsed"),
    ]
    drawn = {(e["from"], e["to"], e["structural"]) for e in found["edges"]}
    assert len(drawn) == len(found["edges"])
    assert drawn == {
        ("r1", "r2t0", True),
        ("r1", "r2t1", True),
        ("r1", "r2t2", True),
        ("r2t0", "r2t0-model-1", True),
        ("r2t0", "internal-1", False),
        ("r2t1", "internal-1", False),
        ("r2t2", "internal-1", False),
        ("internal-1", "r2", False),
        ("r2", "r3", False),
    }
    lines = found["mermaid"].splitlines()
    assert lines[:3] == [
        "flowchart TD",
        '  n0["r1: completed"]',
        '  n1("r2t0 delegate_task: completed")',
    ]
    assert '  n3{{"r2t2 ask: waiting"}}:::hidden' in lines
    assert "  n0 -.-> n1" in lines
    assert "  n6 --> n7" in lines


def test_scripts_and_compactions_have_their_place(api, database, where):
    def make(tx):
        said = story.open_run(tx, where)
        first = task.add_round(tx, said.run)
        calls = task.add_calls(
            tx, said.run, first, [Call("script", "{}"), Call("ls", "{}", script="r2t0")]
        )
        after = task.add_round(tx, said.run, after=calls)
        made = task.add_round(tx, said.run, key="compaction-1", visibility="hidden")
        tx.run(
            "UPDATE tasks SET mainline = 0, name = 'compaction', parent_id = :round WHERE id = :id",
            round=after.id,
            id=made.id,
        )
        return said

    said = database.write(make)
    drawn = {
        (e["from"], e["to"], e["structural"])
        for e in api.get(where.run(said) + "/graph").json()["edges"]
    }
    assert drawn == {
        ("r1", "r2t0", True),
        ("r2t0", "r2t1", True),
        ("r2t0", "r2", False),
        ("compaction-1", "r2", False),
    }


def test_a_large_run_is_drawn_from_its_newest_tasks(api, database, where, monkeypatch):
    monkeypatch.setattr(graph, "TASKS", 4)
    said = story.rounds(database, where, ["a", "b", "c", "d"])
    found = api.get(where.run(said) + "/graph").json()
    assert found["truncated"] is True
    assert [n["task_key"] for n in found["nodes"]] == ["r3t0", "r3", "r4t0", "r4"]
    assert [(e["from"], e["to"]) for e in found["edges"]] == [
        ("r3", "r4t0"),
        ("r4t0", "r4"),
    ]


def test_a_name_is_masked_and_breaks_nothing(api, database, where):
    def make(tx):
        said = story.open_run(tx, where)
        name = 'x"]; click n0 "javascript:alert(1)" <b>&#; end'
        task.add_calls(tx, said.run, task.add_round(tx, said.run), [Call(name, "{}")])
        return said

    said = database.write(make)
    text = api.get(where.run(said) + "/graph").json()["mermaid"]
    assert all(LINES.fullmatch(line) for line in text.splitlines())
    assert labels(text)["n1"] == 'r2t0 x"]; click n0 "javascript:alert(1)" <b>&#; end: waiting'


@st.composite
def runs_tasks(draw):
    """Tasks as runs come to have them: each beneath a task before it, or beneath none."""
    nodes: list[Node] = []
    kinds = st.sampled_from(("model_task", "tool_task", "await_task", "delegation_task"))
    for number in range(draw(st.integers(0, 14))):
        rounds = [node for node in nodes if node.kind == "model_task"]
        calls = [node for node in nodes if node.kind != "model_task"]
        kind = draw(kinds) if rounds else "model_task"
        parent: Node | None = None
        mainline, round_id = True, None
        if kind == "model_task":
            parent = draw(st.sampled_from([None, None, *calls, *rounds]))
            mainline = parent is None and draw(st.booleans())
        else:
            of = draw(st.sampled_from(rounds))
            beneath = [node for node in calls if node.round_id == of.id]
            parent = draw(st.sampled_from([of, *beneath]))
            round_id = of.id
        nodes.append(
            Node(
                number + 1,
                f"k{number}",
                kind,
                draw(st.sampled_from(("queued", *TERMINAL))),
                draw(st.sampled_from(("visible", "collapsed", "hidden"))),
                mainline,
                draw(st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)),
                None if parent is None else parent.id,
                round_id,
            )
        )
    return nodes


@given(runs_tasks(), st.integers(0, 5))
@settings(max_examples=150, deadline=None)
def test_a_graph_of_any_tasks_is_without_circles_and_drawn_truly(nodes, cut):
    kept = nodes[cut:]
    edges = graph.edges(kept)
    keys = [node.key for node in kept]
    assert len({(e.source, e.target) for e in edges}) == len(edges)
    below = {key: [e.target for e in edges if e.source == key] for key in keys}
    assert {e.source for e in edges} | {e.target for e in edges} <= set(keys)
    state: dict[str, int] = {}

    def walk(key):
        assert state.get(key) != 1, "a circle"
        if key not in state:
            state[key] = 1
            for other in below[key]:
                walk(other)
            state[key] = 2

    for key in keys:
        walk(key)
    # Whatever has its place beneath a task that is drawn hangs there, once.
    by_id = {node.id: node for node in kept}
    for node in kept:
        above = [e for e in edges if e.structural and e.target == node.key]
        parent = by_id.get(node.parent_id or 0)
        if parent is None or (node.kind == parent.kind == "model_task"):
            assert above == []
        else:
            assert [e.source for e in above] == [parent.key]
    text = mermaid.flowchart(Graph(kept, edges, False), lambda name: name)
    assert text.endswith("\n")
    assert all(LINES.fullmatch(line) for line in text[:-1].split("\n"))
    assert len(labels(text)) == len(kept)
    for node, label in zip(kept, labels(text).values(), strict=True):
        assert label.startswith(node.key + (f" {node.name}" if node.name else ":"))
    assert text.count("-->") + text.count("-.->") == len(edges)
    assert text.count(":::hidden") == sum(node.visibility == "hidden" for node in kept)


# --- phases --------------------------------------------------------------------------------------


def test_a_run_that_goes_on_says_where_it_is(api, database, where):
    said = story.branched(database, where)
    found = api.get(where.run(said) + "/phases").json()
    assert list(found) == ["phases", "current", "background", "spend"]
    assert [(p["task_key"], p["status"], p["step"], p["calls"]) for p in found["phases"]] == [
        ("r1", "completed", "calls", {"completed": 2, "waiting": 1}),
        ("r2", "waiting", "waiting", {}),
        ("r3", "failed", "settled", {}),
    ]
    assert found["current"] == "r3"
    assert [(b["task_key"], b["kind"], b["status"]) for b in found["background"]] == [
        ("r2t2", "await_task", "waiting"),
        ("r2", "model_task", "waiting"),
    ]


def test_a_run_that_has_its_end_has_no_current_phase_and_all_its_costs(api, database, where):
    said = story.rounds(database, where, ["a", "b", "c"])
    found = api.get(where.run(said) + "/phases").json()
    assert [(p["task_key"], p["step"]) for p in found["phases"]] == [
        ("r1", "settled"),
        ("r2", "settled"),
        ("r3", "settled"),
    ]
    assert all({"started_at", "completed_at"} <= set(p) for p in found["phases"])
    assert (found["current"], found["background"]) == (None, [])
    assert found["spend"] == api.get(where.path).json()["conversation"]["usage_summary"]
    assert found["spend"]["cost_amount"] == "0.03"


def test_superseded_calls_are_spent_too_and_other_runs_are_not(api, database, where):
    said = story.branched(database, where)
    other = story.another(database, where)
    story.rounds(database, other, ["x"])

    def uncosted(tx):
        call = invocation.select(tx, said.run, task.find(tx, said.run, "r2"), story.SMALL)
        invocation.settle(tx, call, usage=Usage(prompt_tokens=7))

    database.write(uncosted)
    spend = api.get(where.run(said) + "/phases").json()["spend"]
    assert (spend["request_count"], spend["input_tokens"]) == (6, 257)
    assert (spend["cost_amount"], spend["cost_complete"]) == ("0.05", False)


def test_a_model_that_speaks_and_calls_that_are_made(api, database, where):
    def make(tx):
        said = story.open_run(tx, where)
        first = task.add_round(tx, said.run)
        invocation.select(tx, said.run, first, story.SMALL)
        return said

    said = database.write(make)

    def phase():
        (found,) = api.get(where.run(said) + "/phases").json()["phases"]
        return found["step"], found["calls"]

    assert phase() == ("model", {})

    def call(tx):
        first = task.settle(tx, said.run, task.find(tx, said.run, "r1"))
        (made,) = task.add_calls(tx, said.run, first, [Call("ls", "{}")])
        return made

    made = database.write(call)
    assert phase() == ("calls", {"waiting": 1})
    assert api.get(where.run(said) + "/phases").json()["background"] == []
    database.write(lambda tx: task.settle(tx, said.run, made))
    assert phase() == ("settled", {"completed": 1})


def test_a_run_before_its_first_round(api, database, where):
    said = database.write(lambda tx: story.open_run(tx, where))
    found = api.get(where.run(said) + "/phases").json()
    assert (found["phases"], found["current"], found["background"]) == ([], None, [])
    drawn = api.get(where.run(said) + "/graph").json()
    assert drawn == {"nodes": [], "edges": [], "mermaid": "flowchart TD\n"}


def test_a_pruned_run_has_neither(api, database, where):
    said = story.rounds(database, where, ["a"])
    story.run_sql(database, "DELETE FROM tasks")
    story.run_sql(database, "UPDATE runs SET details_pruned_at = 1")
    for path in ("/graph", "/phases"):
        answer = api.get(where.run(said) + path)
        assert (answer.status_code, answer.json()["error"]["code"]) == (
            410,
            "execution_details_pruned",
        )


# --- the transcript beneath a call, and what stands around a run ---------------------------------


def test_beneath_a_script_each_of_its_calls_stands(api, database, where):
    def make(tx):
        said = story.open_run(tx, where)
        first = task.add_round(tx, said.run)
        (script,) = task.add_calls(tx, said.run, first, [Call("script", "{}")])
        for n in range(5):
            call = task.add_beneath(tx, said.run, script, Call("ls", f'{{"n":{n}}}'))
            task.settle(tx, said.run, call, output=f"files {n} é")
        hidden = Call("secret", "{}", visibility="hidden")
        task.add_beneath(tx, said.run, script, hidden)
        return said

    said = database.write(make)
    path = where.run(said) + "/transcript"
    (first,) = api.get(path).json()["rounds"]
    assert first["branches"] == ["r2t0"]
    page = api.get(path, params={"prefix": "r2t0", "limit": 2}).json()
    assert [(r["task_key"], r["text_preview"], r["text_bytes"]) for r in page["rounds"]] == [
        ("r2t4", "files 3 é", 10),
        ("r2t5", "files 4 é", 10),
    ]
    assert page["rounds"][0]["calls"] == {"count": 0, "items": []}
    older = page["pagination"]["next_before"]
    page = api.get(path, params={"prefix": "r2t0", "before": older}).json()
    assert [r["task_key"] for r in page["rounds"]] == ["r2t1", "r2t2", "r2t3"]


def test_a_round_that_was_asked_with_less_says_so(api, database, where):
    said = story.rounds(database, where, ["a", "b"])
    story.run_sql(
        database,
        "UPDATE events SET type = 'context_trimmed' WHERE type = 'round_result' AND task_id ="
        " (SELECT id FROM tasks WHERE key = 'r2')",
    )
    first, second = api.get(where.run(said) + "/transcript").json()["rounds"]
    assert "pruned_before" not in first
    assert second["pruned_before"] is True


def test_a_run_names_the_default_runner_of_its_conversation(api, database, org, where):
    said = story.rounds(database, where, ["a"])
    assert api.get(where.run(said)).json()["run"]["default_runner"] is None

    def device(tx):
        made = tx.insert(
            "devices",
            public_id="00000000-0000-7000-8000-00000000000d",
            organization_id=org.owner.organization_id,
            creator_id=org.owner.principal_id,
            credential_id=tx.value("SELECT min(id) FROM credentials"),
            install_id="i",
            name="Builder",
            lifecycle="persistent",
            created_at=1,
            last_seen_at=1,
        )
        tx.run("UPDATE conversations SET default_runner_id = :id", id=made)

    database.write(device)
    found = api.get(where.run(said)).json()["run"]
    assert found["default_runner"] == {
        "executor_public_id": "00000000-0000-7000-8000-00000000000d",
        "name": "Builder",
    }
    assert found["approval_mode"] == "bypass"
    assert found["prompt_mechanism"] is None


def test_a_deleted_subagent_is_named_no_more(api, database, where):
    said = story.rounds(database, where, ["a", "b"])
    child = story.another(database, where)
    story.run_sql(
        database,
        "UPDATE tasks SET child_conversation_id = :id WHERE key = 'r2t0'",
        id=child.conversation.id,
    )

    def named():
        (call,) = api.get(where.run(said) + "/transcript").json()["rounds"][0]["calls"]["items"]
        detail = api.get(where.run(said) + "/tasks/r2t0").json()["task"]
        key = "child_conversation_public_id"
        return call.get(key), detail.get(key)

    assert named() == (child.conversation.public_id,) * 2
    story.tombstone(database, child)
    assert named() == (None, None)


def test_a_held_run_draws_attention(api, database, where):
    said = story.branched(database, where)
    database.write(lambda tx: run.move(tx, said.run, "needs_attention", reason="refused"))
    found = api.get(where.run(said)).json()["run"]
    assert found["attention"] == {"reason": "refused"}
    assert api.get(where.run(said) + "/phases").json()["current"] == "r3"
