"""What names something in a document still names it when the name held a secret."""

import msgspec

from exports import exported
from stenograph.trajectories.importers.discovery import read_bytes
from stenograph.trajectories.recording.record import record
from trajectories.atif.documents import document, results, user

SECRET = "hunter2-hunter2"


def test_references_in_extras_get_the_alias_of_what_they_name(database, org):
    child_id, session, call_id = (f"{kind}-{SECRET}" for kind in ("child", "session", "call"))
    child = document(user(), trajectory_id=child_id, session_id=session)
    ref = {"trajectory_id": child_id, "session_id": session}
    call = {"tool_call_id": call_id, "function_name": "f", "arguments": {"trajectory_id": child_id}}
    whole = document(
        user(extra={"parent_tool_call_id": call_id}),
        results({"source_call_id": call_id, "subagent_trajectory_ref": [ref]}, calls=[call]),
        subagent_trajectories=[child],
        extra={**ref, "tool_call_id": call_id, "note": child_id, "deep": {"session_id": session}},
        final_metrics={"extra": {"trajectory_id": child_id}},
    )
    (draft,) = read_bytes(msgspec.json.encode(whole))
    session_id = database.write(lambda tx: record(tx, org.owner, draft))[0].session_id
    found = exported(database, session_id, secrets=[SECRET])
    (below,) = found["subagent_trajectories"]
    step = found["steps"][1]
    alias = {"trajectory_id": below["trajectory_id"], "session_id": below["session_id"]}
    call_alias = step["tool_calls"][0]["tool_call_id"]
    assert len({*alias.values(), call_alias}) == 3
    (result,) = step["observation"]["results"]
    assert result["source_call_id"] == call_alias
    assert result["subagent_trajectory_ref"] == [alias]
    assert found["steps"][0]["extra"]["parent_tool_call_id"] == call_alias
    extra = found["extra"]
    assert {name: extra[name] for name in alias} == alias
    assert extra["tool_call_id"] == call_alias
    assert found["final_metrics"]["extra"]["trajectory_id"] == alias["trajectory_id"]
    # What is free text is masked: it names nothing that a reader would look up.
    assert extra["note"] == "child-[redacted-secret]"
    assert extra["deep"] == {"session_id": "session-[redacted-secret]"}
    assert step["tool_calls"][0]["arguments"] == {"trajectory_id": "child-[redacted-secret]"}
    assert SECRET not in str(found)
