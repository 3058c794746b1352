"""MCP servers: what one may be, whose it is, and what becomes of its values."""

import pytest

from stenograph.accounts import mcp_server
from stenograph.accounts.mcp_place import Wanted
from stenograph.errors import ConflictError, ForbiddenError, InvalidInputError, NotFoundError
from stenograph.storage.sealing import SealError

URL = "https://tools.example/mcp"
TOKEN = "hunter2-token"


@pytest.fixture
def rooms(database, org, sealer):
    """Set up, change and look at servers, as the owner unless said otherwise."""

    class Rooms:
        def create(self, transport="streamable_http", *, stdio=True, by=org.owner, **wanted):
            wanted = {"name": "tools"} | wanted
            return database.write(
                lambda tx: mcp_server.create(
                    tx, by, sealer, transport, Wanted(**wanted), stdio=stdio
                )
            )

        def change(self, server, *, stdio=True, by=org.owner, **wanted):
            return database.write(
                lambda tx: mcp_server.change(
                    tx, by, sealer, server.public_id, Wanted(**wanted), stdio=stdio
                )
            )

        def delete(self, server, by=org.owner):
            database.write(lambda tx: mcp_server.delete(tx, by, server.public_id))

        def listed(self, by=org.owner):
            with database.read() as tx:
                return mcp_server.listed(tx, by)

        def enabled(self, organization_id):
            with database.read() as tx:
                return mcp_server.enabled(tx, organization_id)

    return Rooms()


def test_a_server_is_listed_by_name_and_only_at_home(rooms, org):
    first = rooms.create(url=URL, name="web")
    second = rooms.create(url=URL, name="a-first", enabled=False)
    theirs = rooms.create(url=URL, name="web", by=org.stranger)
    assert rooms.listed() == [second, first]
    assert rooms.enabled(org.owner.organization_id) == [first]
    assert rooms.listed(org.stranger) == [theirs]
    for act in (rooms.delete, rooms.change):
        with pytest.raises(NotFoundError, match="no such MCP server"):
            act(first, by=org.stranger)
    rooms.delete(first)
    assert rooms.listed() == [second]


def test_a_name_is_taken_once_and_there_are_not_too_many(rooms, org, monkeypatch):
    first = rooms.create(url=URL)
    other = rooms.create(url=URL, name="other")
    with pytest.raises(ConflictError) as taken:
        rooms.create(url=URL)
    assert taken.value.code == "mcp_server_exists"
    with pytest.raises(ConflictError) as renamed:
        rooms.change(other, name="tools")
    assert renamed.value.code == "mcp_server_exists"
    assert rooms.change(first, name="tools").updated_at > first.updated_at
    monkeypatch.setattr(mcp_server, "MOST_SERVERS", 2)
    with pytest.raises(ConflictError) as full:
        rooms.create(url=URL, name="third")
    assert full.value.code == "mcp_server_limit_reached"


def test_a_query_is_as_secret_as_a_header(rooms, sealer, database):
    made = rooms.create(url=f"{URL}?key={TOKEN}&region=eu", headers={"Authorization": "Bearer abc"})
    assert made.url == URL
    private = made.private(sealer)
    assert (private.query, private.query_names) == (f"key={TOKEN}&region=eu", ["key", "region"])
    assert private.headers == {"Authorization": "Bearer abc"}
    assert TOKEN not in repr(made) + repr(private)
    with database.read() as tx:
        assert TOKEN not in repr(tx.rows("SELECT * FROM mcp_servers"))


def test_values_change_one_by_one_and_stay_at_their_place(rooms, sealer):
    made = rooms.create(url=URL, headers={"Authorization": "Bearer abc", "X-Team": "blue"})
    changed = rooms.change(made, headers={"authorization": "Bearer def", "X-Team": None})
    assert changed.private(sealer).headers == {"authorization": "Bearer def"}
    same = rooms.change(made, url=f"{URL}?a=1", enabled=False)
    assert same.private(sealer).headers == {"authorization": "Bearer def"}
    # Who names another place must not be handed what was given for this one.
    for url in ("https://other.example/mcp", "https://tools.example/other"):
        moved = rooms.change(made, url=url, headers={"X-Team": "red"})
        assert moved.private(sealer).headers == {"X-Team": "red"}
        assert moved.private(sealer).query == ""


def test_variables_stay_with_their_command(rooms, sealer):
    made = rooms.create("stdio", command="npx", args=["server"], env={"TOKEN": TOKEN})
    assert made.command == ("npx", "server")
    assert rooms.change(made, enabled=True).private(sealer).env == {"TOKEN": TOKEN}
    assert rooms.change(made, command="npx").private(sealer).env == {"TOKEN": TOKEN}
    moved = rooms.change(made, args=["-e", "printenv"])
    assert (moved.command, moved.private(sealer).env) == (("npx", "-e", "printenv"), {})


def test_a_sealed_value_opens_in_its_own_row_only(rooms, sealer, database):
    made, other = (rooms.create(url=URL, name=name, headers={"A": TOKEN}) for name in "ab")
    database.write(
        lambda tx: tx.run(
            "UPDATE mcp_servers SET ciphertext = :sealed WHERE id = :id",
            sealed=made.sealed,
            id=other.id,
        )
    )
    with pytest.raises(SealError):
        rooms.listed()[1].private(sealer)


def test_a_command_is_an_admins_and_needs_the_setting(rooms, org):
    with pytest.raises(ForbiddenError):
        rooms.create("stdio", command="npx", by=org.member)
    with pytest.raises(ConflictError) as off:
        rooms.create("stdio", command="npx", stdio=False)
    assert off.value.code == "mcp_stdio_disabled"
    made = rooms.create("stdio", command="npx", by=org.admin)
    with pytest.raises(ForbiddenError):
        rooms.change(made, enabled=False, by=org.member)
    with pytest.raises(ForbiddenError):
        rooms.delete(made, by=org.member)
    rooms.delete(made, by=org.admin)
    assert rooms.create(url=URL, by=org.member).name == "tools"


@pytest.mark.parametrize(
    ("transport", "wanted"),
    [
        ("streamable_http", {"name": "No Spaces"}),
        ("streamable_http", {"name": ""}),
        ("streamable_http", {"name": "x" * 41, "url": URL}),
        ("streamable_http", {}),
        ("streamable_http", {"url": "ftp://x.example/"}),
        ("streamable_http", {"url": "http://"}),
        ("streamable_http", {"url": "http://[::1/"}),
        ("streamable_http", {"url": "http://x.example:99999/"}),
        ("streamable_http", {"url": "http://me:secret@x.example/"}),
        ("streamable_http", {"url": "http://x.example/ü"}),
        ("streamable_http", {"url": "http://x.example/" + "x" * 2_048}),
        ("streamable_http", {"url": URL, "headers": {"Host": "other"}}),
        ("streamable_http", {"url": URL, "headers": {"no name": "x"}}),
        ("streamable_http", {"url": URL, "headers": {"X": "a\r\nB: c"}}),
        ("streamable_http", {"url": URL, "headers": {"X": "x" * 20_000}}),
        ("streamable_http", {"url": URL, "headers": {f"X-{n}": "x" for n in range(51)}}),
        ("streamable_http", {"url": URL, "command": "npx"}),
        ("stdio", {}),
        ("stdio", {"command": ""}),
        ("stdio", {"command": "a\0b"}),
        ("stdio", {"command": "npx", "args": ["\ud800"]}),
        ("stdio", {"command": "npx", "env": {"NO NAME": "x"}}),
        ("stdio", {"command": "npx", "env": {"A": "\0"}}),
        ("stdio", {"command": "npx", "url": URL}),
    ],
)
def test_what_no_server_can_be(rooms, transport, wanted):
    with pytest.raises(InvalidInputError) as refused:
        rooms.create(transport, **wanted)
    assert refused.value.code == "invalid_mcp_server"
    assert rooms.listed() == []
