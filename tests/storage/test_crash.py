"""`kill -9` in the middle of commits: what was acknowledged is there afterwards."""

import os
import signal
import subprocess
import sys
import time

import pytest

from stenograph.storage import location

#: Writes from several threads, and names each number once its write has returned.
WRITER = """
import sys, threading
from stenograph.ids import new_id
from stenograph.storage import location

database = location.connect(location.Location(sys.argv[1]))
lock = threading.Lock()
counter = iter(range(1_000_000))

def add(tx, n):
    tx.insert("organizations", public_id=new_id(), slug=f"s{n}", name=str(n), created_at=1)
    tx.insert("organizations", public_id=new_id(), slug=f"t{n}", name=str(n), created_at=1)

def work():
    while True:
        with lock:
            n = next(counter)
        database.write(lambda tx: add(tx, n))
        with lock:
            sys.stdout.write(f"{n}\\n")
            sys.stdout.flush()

for _ in range(6):
    threading.Thread(target=work, daemon=True).start()
threading.Event().wait()
"""


@pytest.mark.parametrize("moment", [1, 60, 400])
def test_what_was_acknowledged_survives_a_kill(database_location, moment):
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, database_location.url], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    acknowledged = [int(process.stdout.readline()) for _ in range(moment)]
    os.kill(process.pid, signal.SIGKILL)
    # Also what it had said before it died and nobody had read.
    acknowledged += [int(line) for line in process.stdout.read().splitlines() if line]
    assert process.wait() == -signal.SIGKILL
    process.stdout.close()

    opened = location.connect(database_location)
    deadline = time.monotonic() + 10
    while True:  # PostgreSQL may still be rolling back what the dead one had open.
        with opened.read() as tx:
            found = {int(n): count for n, count in tx.rows(
                "SELECT name, count(*) FROM organizations GROUP BY name"
            )}  # fmt: skip
        if set(acknowledged) <= found.keys() or time.monotonic() > deadline:
            break
    assert set(acknowledged) <= found.keys()
    assert set(found.values()) == {2}, "a transaction is there whole or not at all"
    if not database_location.is_postgres:
        with opened.read() as tx:
            assert tx.value("PRAGMA integrity_check") == "ok"
    opened.close()
