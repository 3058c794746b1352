"""The first start: made once, even when two processes start together, and its secrets private."""

import stat
import threading

import msgspec

from stenograph.accounts import access, first_start
from stenograph.storage import location


def test_it_makes_an_organization_and_a_key_of_each_family(database, tmp_path):
    assert first_start.ensure(database, tmp_path) is True
    keys = msgspec.json.decode((tmp_path / "keys.json").read_bytes())
    assert keys.keys() == {"organization", "api", "member", "executor"}
    assert keys["organization"] == "default"
    with database.read() as tx:
        for plane in ("api", "member", "executor"):
            found = access.resolve(tx, keys[plane])
            assert (found.plane, found.organization_slug) == (plane, "default")
        assert access.local(tx).role == "owner"


def test_the_file_is_its_owners_alone(database, tmp_path):
    data = tmp_path / "new" / "folder"
    first_start.ensure(database, data)
    assert stat.S_IMODE((data / "keys.json").stat().st_mode) == 0o600
    assert stat.S_IMODE(data.stat().st_mode) == 0o700


def test_a_second_start_changes_nothing(database, tmp_path):
    first_start.ensure(database, tmp_path)
    before = (tmp_path / "keys.json").read_bytes()
    assert first_start.ensure(database, tmp_path) is False
    assert (tmp_path / "keys.json").read_bytes() == before


def test_processes_that_start_together_make_it_once(database_location, tmp_path):
    opened = [location.connect(database_location) for _ in range(4)]
    together = threading.Barrier(len(opened))
    made = []

    def start(database):
        together.wait()
        made.append(first_start.ensure(database, tmp_path))

    threads = [threading.Thread(target=start, args=[database]) for database in opened]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made) == [False, False, False, True]
    keys = msgspec.json.decode((tmp_path / "keys.json").read_bytes())
    with opened[0].read() as tx:
        assert tx.value("SELECT count(*) FROM organizations") == 1
        assert tx.value("SELECT count(*) FROM credentials") == 3
        access.resolve(tx, keys["api"])
    for database in opened:
        database.close()


def test_a_start_that_cannot_write_its_keys_makes_nothing(database, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    try:
        first_start.ensure(database, blocked)
    except OSError:
        pass
    with database.read() as tx:
        assert tx.value("SELECT count(*) FROM organizations") == 0
