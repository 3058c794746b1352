"""The served document says of `listReasonMessages` what its founding text says.

The facts below are those of the OpenAPI text of the page "List a Reason's messages".
"""

import pytest

OPERATION = "/v3/organizations/{orgId}/reasons/{reasonId}/messages"

DESCRIPTION = (
    "Returns the Reason's conversation in order, as listSessionConversation returns its"
    " conversation Session's: the opening prompt, each message sent to it, and one reply for every"
    " finished turn, failed or cancelled turns included, with `kind` telling them apart. The page"
    " is empty, with `session_id` null, until the conversation is opened by its first message."
    " Cursor-paginated: pass `end_cursor` as `after`, and keep polling with it to receive the"
    " Reason's next reply. Readable by the Reason's owner and the people it is shared with. Scope:"
    " `sessions:read`"
)

PARAMETERS = [
    {
        "in": "query",
        "name": "first",
        "schema": {"type": "integer", "default": 50},
        "description": "How many conversation items one page holds, up to 200.",
    },
    {
        "in": "query",
        "name": "after",
        "schema": {"type": "string"},
        "description": "Cursor from a previous page's `end_cursor` (or an item's `cursor`): return"
        " only what follows it. Keep polling with the last `end_cursor` to receive the Reason's"
        " next replies.",
    },
]

PAGE = {
    "type": "object",
    "properties": {
        "items": {"type": "array", "items": "ConversationItem"},
        "has_next_page": {"type": "boolean"},
        "end_cursor": {
            "description": "The cursor of the last item, or the `after` that was sent when the"
            " page is empty; null only when nothing has been read. Keep polling with it after"
            " `has_next_page` is false to receive what is said next.",
            "type": ["string", "null"],
        },
        "reason_id": {
            "type": "string",
            "format": "uuid",
            "description": "The Reason whose conversation this is.",
        },
        "session_id": {
            "description": "The Reason's conversation Session; null, with no items, until its"
            " first message opens it.",
            "type": ["string", "null"],
        },
    },
    "required": ["items", "has_next_page", "end_cursor", "reason_id", "session_id"],
}

ITEM = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "description": "Identifies the item across reads."},
        "cursor": {
            "type": "integer",
            "description": "Where a reader stands after this item: pass it as `after` to read what"
            " follows. Cursors strictly increase through the list. It is a position in this list"
            " only, not a message `seq`, and the same item can carry a different cursor in a later"
            " read; use `id` to recognise an item.",
        },
        "kind": {
            "type": "string",
            "enum": ["message", "prompt", "reply"],
            "description": "`prompt` is the Session's opening prompt, `message` a message in the"
            " conversation afterwards, `reply` how a finished turn ended.",
        },
        "role": {
            "type": "string",
            "description": "`user` for the prompt and for a message sent to the Session;"
            " `assistant` for a reply, and for a message the agent posted outside a turn's reply"
            " (a greeting or a notice).",
        },
        "content": {
            "type": "string",
            "description": "For a reply, the turn's `result_summary`; empty when the turn left"
            " none.",
        },
        "status": {
            "type": "string",
            "description": "Replies only: how the turn ended, in the values of the Session's"
            " `status`.",
        },
        "outcome": {
            "description": "Replies only: the turn's outcome, as the Session's `outcome` reports"
            " it for the latest turn. Null when the turn did not succeed and declared none, for"
            " example a failed or cancelled turn.",
            "type": ["string", "null"],
            "enum": ["action_required", "failure", "success"],
        },
        "metadata": {
            "type": "object",
            "properties": {
                "source": {
                    "type": "string",
                    "enum": ["subagent"],
                    "description": "An automatic child result, not a human follow-up.",
                }
            },
            "required": ["source"],
        },
        "attachments": {
            "type": "array",
            "items": {"type": "object"},
            "description": "Messages only. Files attached to the opening prompt are not listed"
            " here; list them with listSessionAttachments.",
        },
        "created_at": {"type": ["string", "null"], "format": "date-time"},
    },
    "required": ["id", "cursor", "kind", "role", "content"],
}

ERROR = {
    "type": "object",
    "properties": {
        "error": {
            "type": ["object", "string"],
            "required": ["type", "message"],
            "properties": {
                "type": {"type": "string"},
                "message": {"type": "string"},
                "request_id": {"type": ["null", "string"]},
            },
        },
        "message": {"type": "string"},
        "required_scope": {
            "type": "string",
            "description": "The capability required when the request was denied for a missing"
            " scope.",
        },
    },
}

RESPONSES = {
    "401": (
        "Missing, invalid, or expired key.",
        {"error": "missing_bearer", "message": "Authorization required"},
    ),
    "403": (
        "The key lacks the required scope or role.",
        {"error": "missing_scope", "required_scope": "sessions:read"},
    ),
    "404": ("Resource not found.", {"error": "session_not_found"}),
    "429": (
        "Too many requests. Retry after the number of seconds in the `Retry-After` response"
        " header.",
        {
            "error": {
                "type": "rate_limited",
                "message": "This API key exceeded its request-rate limit",
            }
        },
    ),
}


@pytest.fixture
def document(api):
    return api.get("/openapi.json").json()


@pytest.fixture
def operation(document):
    return document["paths"][OPERATION]["get"]


def plain(schema, document, keep=()):
    """One spelling for what JSON Schema can say in several ways.

    `anyOf` and `oneOf` of types become a list of types, references are followed except to the
    names of `keep`, `const` is an enum of one, and titles are left out.
    """
    if isinstance(schema, list):
        return [plain(item, document, keep) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        if name in keep:
            return name
        return plain(document["components"]["schemas"][name], document, keep)
    found = {k: plain(v, document, keep) for k, v in schema.items() if k != "title"}
    for way in ("anyOf", "oneOf"):
        if way in found:
            options = found.pop(way)
            types = [option.get("type", "string") for option in options]
            for option in options:
                found |= {k: v for k, v in option.items() if k != "type"}
            found["type"] = types
    if "const" in found:
        found["enum"] = [found.pop("const")]
    if isinstance(found.get("type"), list):
        found["type"] = sorted(found["type"])
    if "enum" in found:
        found["enum"] = sorted(found["enum"])
        found.setdefault("type", "string")
    return found


def facts(expected):
    """The texts above, in the same one spelling."""
    return plain(expected, {})


def without(schema, *names):
    return {name: value for name, value in schema.items() if name not in names}


def test_the_operation(operation, document):
    assert operation["operationId"] == "listReasonMessages"
    assert operation["tags"] == ["Reasons"]
    assert operation["summary"] == "List a Reason's messages"
    assert " ".join(operation["description"].split()) == DESCRIPTION
    assert operation["security"] == [{"reasonApiKey": ["sessions:read"]}]


def test_its_parameters(operation, document):
    found = [without(p, "required") for p in operation["parameters"]]
    assert not any(p.get("required") for p in operation["parameters"])
    # The bound that the text tells in words stands in the schema too.
    assert found[0]["schema"].pop("minimum") == 1
    assert found[0]["schema"].pop("maximum") == 200
    assert found == PARAMETERS
    path = {p["name"]: p for p in document["paths"][OPERATION]["parameters"]}
    assert path["orgId"]["schema"] == {"type": "string"}
    assert path["orgId"]["description"] == (
        "Organization id or slug. Resolve it with `GET /v3/self`."
    )
    assert path["reasonId"]["schema"] == {"type": "string", "format": "uuid"}
    assert path["reasonId"]["description"] == (
        "The Reason id, returned as `id` by `listReasons` and `createReason`."
    )
    assert all(p["required"] and p["in"] == "path" for p in path.values())


def test_its_page(operation, document):
    shape = operation["responses"]["200"]["content"]["application/json"]["schema"]
    assert shape == {"$ref": "#/components/schemas/ReasonMessagePage"}
    page = plain(shape, document, keep=["ConversationItem"])
    assert without(page, "description") == facts(PAGE)


def test_its_items(document):
    item = plain(document["components"]["schemas"]["ConversationItem"], document)
    properties = item["properties"]
    assert properties["created_at"].pop("default", None) is None
    # Where the text says nothing more of it, a shape may say what it is.
    properties["metadata"].pop("description", None)
    assert without(item, "description") == facts(ITEM)


def test_its_errors(operation, document):
    assert set(operation["responses"]) == {"200", "400", "401", "403", "404", "429"}
    bad = operation["responses"]["400"]
    assert bad["description"] == (
        "`after` is not a cursor this list could have issued (`invalid_cursor`)."
    )
    assert bad["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/Error"}
    for status, (description, example) in RESPONSES.items():
        name = operation["responses"][status]["$ref"].rsplit("/", 1)[1]
        found = document["components"]["responses"][name]
        assert found["description"] == description
        content = found["content"]["application/json"]
        assert content == {"schema": {"$ref": "#/components/schemas/Error"}, "example": example}
    limited = document["components"]["responses"]["RateLimited"]
    assert limited["headers"]["Retry-After"] == {
        "description": "Seconds to wait before retrying.",
        "schema": {"type": "integer", "minimum": 1},
        "required": True,
    }
    error = plain(document["components"]["schemas"]["Error"], document)
    assert without(error, "required") == facts(ERROR)
