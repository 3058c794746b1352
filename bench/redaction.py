"""Print what redaction costs: scanning clean step JSON, masking dirty strings, hostile input.

Run: `python bench/redaction.py`. Beside each figure stands what the standard library's `re` needs
for the same patterns.
"""

import random
import re
import time
from collections.abc import Callable, Iterator

import msgspec

from stenograph.trajectories.redaction import Redactor
from stenograph.trajectories.redaction.shapes import (
    KNOWN_CREDENTIALS,
    OWN_CREDENTIALS,
    UNBROKEN_RUN,
)

SECRETS = [
    "hunter2-correct-horse",
    'pass"word\\with/quotes',
    "two lines of it\nand another line",
    "ghs_16C7e42F292c6912E7710c838347Ae178B4a",
]
WORDS = [
    *("the", "agent", "reads", "src/app/models.py", "and", "finds", "that", "import", "json"),
    *("def", "main", "self", "return", "value", "test_login", "passed", "0.12s", "error:"),
    *("expected", "200,", "got", "404", "in", "/usr/lib/python3/dist-packages", "token"),
    *("password", "key", "{'a':", "1}", "[INFO]", "2026-01-02", "é", "日本"),
    "018f3f2e-7b7a-7cc3-98c4-dc0c0c07398f",
]
MEGABYTE = 1_000_000


def steps(size: int) -> Iterator[bytes]:
    """Yield encoded agent steps of about 2 kB, `size` bytes in all."""
    rng, made, number = random.Random(7), 0, 0
    while made < size:
        number += 1
        prose, output = (
            "\n".join(" ".join(rng.choices(WORDS, k=12)) for _ in range(lines)) for lines in (4, 14)
        )
        call = f"call_{rng.getrandbits(96):024x}"
        step = {
            "step_id": number,
            "timestamp": "2026-01-02T03:04:05.678Z",
            "source": "agent",
            "message": prose,
            "tool_calls": [
                {
                    "tool_call_id": call,
                    "function_name": "bash",
                    "arguments": {"command": f'cat "src/file_{number}.py" | head'},
                }
            ],
            "observation": {"results": [{"source_call_id": call, "content": output}]},
            "metrics": {"prompt_tokens": 1200 + number, "completion_tokens": 88, "cost_usd": 0.01},
        }
        encoded = msgspec.json.encode(step)
        made += len(encoded)
        yield encoded


def seconds(work: Callable[[], object], rounds: int = 3) -> float:
    """Return the best time of `rounds`."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def line(name: str, size: int, elapsed: float) -> None:
    print(f"{name:<44} {size / elapsed / MEGABYTE:>8.1f} MB/s  {elapsed * 1e3:>9.2f} ms")


def stdlib_scan() -> re.Pattern[bytes]:
    shapes = (*OWN_CREDENTIALS, *KNOWN_CREDENTIALS, UNBROKEN_RUN)
    return re.compile(b"|".join(b"(?:" + shape.scan + b")" for shape in shapes))


def main() -> None:
    data = list(steps(20 * MEGABYTE))
    size = sum(map(len, data))
    plain, armed = Redactor([], "standard"), Redactor(SECRETS, "standard")
    assert all(map(armed.clean, data))
    print(f"rules for 4 secrets: {seconds(lambda: Redactor(SECRETS, 'standard')) * 1e3:.2f} ms")
    line("clean, standard, no secrets", size, seconds(lambda: list(map(plain.clean, data))))
    line("clean, standard, 4 secrets", size, seconds(lambda: list(map(armed.clean, data))))
    joined = [b"".join(data[at : at + 32]) for at in range(0, len(data), 32)]
    line("  32 steps at a time", size, seconds(lambda: list(map(armed.clean, joined))))
    ephemeral = Redactor(SECRETS, "ephemeral")
    line("clean, ephemeral, 4 secrets", size, seconds(lambda: list(map(ephemeral.clean, data))))
    pattern, some = stdlib_scan(), data[:200]
    line(
        "  the same patterns in re (no secrets)",
        sum(map(len, some)),
        seconds(lambda: [pattern.search(step) for step in some], 1),
    )

    dirty = [step.decode() + " commit " + "0f" * 20 for step in data[:500]]
    total = sum(map(len, dirty))
    line(
        "text, 2 kB strings with a 40-run each",
        total,
        seconds(lambda: list(map(armed.text, dirty))),
    )
    planted = [f"{step.decode()} {SECRETS[0]} AKIAIOSFODNN7EXAMPLE" for step in data[:500]]
    line(
        "text, 2 kB strings with a secret and a key",
        total,
        seconds(lambda: list(map(armed.text, planted))),
    )
    decoded = [msgspec.json.decode(step) for step in data[:500]]
    line("value, 2 kB steps walked", total, seconds(lambda: list(map(armed.value, decoded))))

    print("hostile input, 1 MB and 2 MB of each: time should double")
    for unit in HOSTILE:
        short, long = (unit * (n * MEGABYTE // len(unit)) for n in (1, 2))
        first, second = (seconds(lambda text=text: armed.text(text), 1) for text in (short, long))
        print(f"  {unit[:34]!r:<38} {first * 1e3:>9.1f} ms {second * 1e3:>9.1f} ms")


HOSTILE = [
    "password=",
    "token: token(",
    "token=a(",
    "-----BEGIN PRIVATE KEY-----\n",
    "-----BEGIN PRIVATE KEY-----" + "A" * 20,
    "eyJaaaaa.",
    "eyJaaaaaa",
    "://a:",
    "://a:b@",
    "reason_",
    "reason_a_b_c_d_e_f_g_h_i_j_",
    "A" * 39 + "/",
    "\\",
    "\\n" + "a" * 40,
    "Bearer bearerbearer ",
    "hunter2-correct-hors",
    "hunter2-correct-horse",
    "[redacted-secret]",
    "[redacted-secret]x",
    "AKIAIOSFODNN7EXAMPLE ",
    "é",
]

if __name__ == "__main__":
    main()
