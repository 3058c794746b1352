"""The fixed texts of the OpenAPI document: tags, security schemes, errors, path parameters."""

from typing import Any

from stenograph.accounts.scopes import SCOPES

INTRODUCTION = (
    "The full record of what agents said, thought and did, through two families of routes over one"
    " record. The v3 API (`/v3`) reads and writes sessions, Reasons and trajectories; resolve your"
    " `org_id` once with `GET /v3/self`. The Agent API (`/agent_api/v1`) reads and writes"
    " workspaces, conversations, turns and stored reasoning. Keys of one family are not accepted"
    " by the other."
)

#: The areas of the v3 API, with the lines of its founding document.
V3_TAGS: dict[str, str] = {
    "Account": "Verify a key and resolve the organization it belongs to.",
    "Reasons": "Start here. A Reason is the long-running agent a person keeps: their main Reason"
    " and named ones, each with its own instructions, default model and repositories,"
    " conversation, Loops and Sessions. Give a Reason work by messaging it (sendReasonMessage) and"
    " read its replies with listReasonMessages.",
    "Loops": "Standing work a Reason does, woken by a schedule or an event: a webhook, a GitHub"
    " event or a Slack message. Each wake opens or continues a Session of the Reason; webhook"
    " events that share a correlation key continue one Session.",
    "Memory": "What Reasons remember across Sessions. Each Session starts by reading MEMORY.md (a"
    " short index) and the list of topic notes, and reads a note when its topic comes up."
    " `personal` memory belongs to one person (the API key's owner) and only their Sessions read"
    " it; `team` memory belongs to the Workspace and every member's Sessions read it. memory:read"
    " lists, reads and searches; memory:write writes and deletes, in team memory only for a"
    " Workspace owner or admin.",
    "Sessions": "A Session is one run of work inside a Reason: every Reason message and Loop wake"
    " runs in one, and createSession starts one directly for a single unattended task with a"
    " pass/fail outcome. Its transcript, events, result and pull request are read here.",
    "Skills": "Reusable instruction bundles Reason selects semantically from their descriptions"
    " for matching agent tasks.",
    "Secrets": "Encrypted credentials injected into the agent's sandbox. Write-only: values can be"
    " set but never read back.",
    "Attachments": "Files uploaded to the organization and shared with sessions, downloaded via"
    " short-lived signed URLs.",
    "Repositories": "Connected repositories, their indexing state, and generated wikis.",
    "Git Connections": "Linked source-control accounts and the repositories they expose.",
    "Machines": "Named Workspace queues served by headless workers. Sessions target a Machine by"
    " name and wait for a free worker; more workers serve more Sessions concurrently.",
    "Devices": "Owned Mac and headless Device identity, bounded enrollment and root grants.",
    "Cloud Access": "Keyless cloud sign-in for sessions: Reason's OIDC issuer facts and the AWS,"
    " Google Cloud and Azure connections a workspace trusts, including which run triggers each one"
    " signs in.",
    "MCP Servers": "Org-level Model Context Protocol servers exposed to the agent. Secret values"
    " are write-only.",
    "Change Request Reviews": "Automated senior-engineer reviews posted on pull requests and merge"
    " requests.",
    "Consumption": "Billing-aligned usage: daily consumption and billing cycles.",
    "Metrics": "Aggregate analytics over sessions, change requests, and usage.",
    "Audit Logs": "An append-only record of changes made within the organization.",
    "Organizations": "The top-level tenant. Create, read, update, and delete organizations.",
    "Members": "People in an organization and their pending invites.",
    "Roles": "Role assignments that govern what each member can do.",
    "Settings": "Organization configuration: namespaced settings and the run tag policy.",
    "Provider credentials": "Configure Bring-Your-Own-Key (BYOK) API keys and subscription"
    " credentials for model providers. Secret values are write-only.",
    "Feedback": "Report problems with the API or these docs to the Reason team.",
    "Projects": "Deprecated: a project is a Reason with the same id. Use the Reasons operations;"
    " these remain for existing clients.",
    "Automations": "The older form of Loops. Prefer the Loops under a Reason (listReasonLoops,"
    " createReasonLoop), which take every wake: schedule, webhook, GitHub, Slack. Use these for"
    " what Loops do not carry yet: a run's MCP and app tools, and automations not filed under a"
    " Reason.",
}

#: The areas of the Agent API that have something to explain.
AGENT_TAGS: dict[str, str] = {
    "Retention": "How long execution details are kept; for an organization's administrators.",
    "Workspaces": "Containers of conversations, private or open to the whole account.",
    "Conversations": "What was said, in turns; who may read and write; forks and archives.",
    "Inputs": "What waits to become a turn.",
    "Turns": "The slots of a conversation.",
    "Variants": "The candidate answers of a turn, and the reasoning stored for each.",
    "Runs": "What the machine did to produce an answer.",
    "Events": "What happened in a conversation, in the order in which it was committed.",
    "Search": "Finding turns by their text.",
    "Enrollment": "How a worker becomes a device, with a ticket that a person made for it.",
    "Executor": "What workers ask: for calls to make, for more time, to have what came of them"
    " kept. A call is given out on a lease; one that is not extended is lost.",
    "Claims": "The leases of calls that workers make.",
    "Progress": "What calls write while workers make them.",
}

PATH_PARAMETERS: dict[str, str] = {
    "orgId": "Organization id or slug. Resolve it with `GET /v3/self`.",
    "reasonId": "The Reason id, returned as `id` by `listReasons` and `createReason`.",
    "sessionId": "The session id, returned as `session_id` by createSession and listSessions.",
    "workspace": "The workspace's `public_id`.",
    "conversation": "The conversation's `public_id`.",
    "turn": "The turn's `public_id`.",
    "variant": "The variant's `public_id`.",
    "run": "The run's `public_id`.",
    "input": "The input's `public_id`.",
    "attachment": "The attachment's `public_id`.",
    "deviceId": "The device's `id`, as listDevices returns it.",
    "claim": "The claim's `claim_id`.",
}

SECURITY_SCHEMES: dict[str, Any] = {
    "reasonApiKey": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "reason_ (legacy: ara_)",
        "description": "A v3 API key. New keys use `reason_`; legacy `ara_` keys remain accepted."
        f" Keys are capability-scoped: {', '.join(SCOPES)}. network:read and network:write are"
        " opt-in, excluded from default keys. Only owners and admins may hold network:write and"
        " sessions:debug, which widens session events to the full diagnostic projection. A key"
        " cannot grant more than it has.",
    },
    "memberSecret": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "sk-steno-v1-",
        "description": "A member secret of the Agent API: it acts as a person or an agent.",
    },
    "executorSecret": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "sk-steno-v1-",
        "description": "An executor transport secret of the Agent API. Member routes refuse it.",
    },
}

V3_ERROR: dict[str, Any] = {
    "type": "object",
    "properties": {
        "error": {
            "oneOf": [
                {"type": "string"},
                {
                    "type": "object",
                    "required": ["type", "message"],
                    "properties": {
                        "type": {"type": "string"},
                        "message": {"type": "string"},
                        "request_id": {"type": ["string", "null"]},
                    },
                },
            ]
        },
        "message": {"type": "string"},
        "required_scope": {
            "type": "string",
            "description": "The capability required when the request was denied for a missing"
            " scope.",
        },
    },
    "required": ["error"],
}

AGENT_ERROR: dict[str, Any] = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {
                "code": {"type": "string", "description": "Branch on this word."},
                "message": {"type": "string"},
            },
        }
    },
    "required": ["error"],
}


def _response(about: str, shape: str, example: Any, headers: Any = None) -> dict[str, Any]:
    found = {
        "description": about,
        "content": {
            "application/json": {
                "schema": {"$ref": f"#/components/schemas/{shape}"},
                "example": example,
            }
        },
    }
    return {**found, "headers": headers} if headers else found


_RETRY = {
    "Retry-After": {
        "description": "Seconds to wait before retrying.",
        "schema": {"type": "integer", "minimum": 1},
        "required": True,
    }
}


def _envelope(code: str, message: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": message}}


#: What a family may answer to any request, by status: (name of the component, the response).
V3_RESPONSES: dict[int, tuple[str, dict[str, Any]]] = {
    400: (
        "BadRequest",
        _response("What was sent cannot be read.", "Error", {"error": "invalid_cursor"}),
    ),
    401: (
        "Unauthorized",
        _response(
            "Missing, invalid, or expired key.",
            "Error",
            {"error": "missing_bearer", "message": "Authorization required"},
        ),
    ),
    403: (
        "Forbidden",
        _response(
            "The key lacks the required scope or role.",
            "Error",
            {"error": "missing_scope", "required_scope": "sessions:read"},
        ),
    ),
    404: (
        "NotFound",
        _response("Resource not found.", "Error", {"error": "session_not_found"}),
    ),
    429: (
        "RateLimited",
        _response(
            "Too many requests. Retry after the number of seconds in the `Retry-After` response"
            " header.",
            "Error",
            {
                "error": {
                    "type": "rate_limited",
                    "message": "This API key exceeded its request-rate limit",
                }
            },
            _RETRY,
        ),
    ),
}

AGENT_RESPONSES: dict[int, tuple[str, dict[str, Any]]] = {
    400: (
        "AgentBadRequest",
        _response(
            "What was sent cannot be read.",
            "AgentError",
            _envelope("parameter_invalid", "Invalid parameter: before"),
        ),
    ),
    401: (
        "AgentUnauthorized",
        _response(
            "No valid secret of this route's plane.",
            "AgentError",
            _envelope("unauthorized", "Unauthorized"),
            {
                "WWW-Authenticate": {
                    "schema": {"type": "string", "const": 'Bearer realm="stenograph"'},
                    "required": True,
                }
            },
        ),
    ),
    403: (
        "AgentForbidden",
        _response(
            "It is visible, and not the caller's to change.",
            "AgentError",
            _envelope("not_authorized", "Not authorized"),
        ),
    ),
    404: (
        "AgentNotFound",
        _response(
            "Not there, or not the caller's to see.",
            "AgentError",
            _envelope("not_found", "Not found"),
        ),
    ),
    429: (
        "AgentRateLimited",
        _response(
            "Too many requests in this minute.",
            "AgentError",
            _envelope("rate_limited", "Too many requests"),
            _RETRY,
        ),
    ),
}

#: What a status means when a route declares it without a sentence of its own.
MEANINGS = {
    409: "The state of the thing does not allow this.",
    410: "Execution details have expired under the account's retention policy.",
    413: "The body is larger than this server takes.",
    422: "Well formed, and refused by a rule.",
}
