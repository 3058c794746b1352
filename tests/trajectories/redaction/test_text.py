"""What goes from a string, what stays, and that masking is done once and for all."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stenograph.trajectories.redaction import MARKERS, MIN_SECRET_LENGTH, Redactor
from strategies.secrets import (
    around,
    known_credentials,
    long_runs,
    own_credentials,
    secret_values,
    spellings,
    without_markers,
)

#: Pieces of what is looked for, to be put together in all ways.
FRAGMENTS = st.one_of(
    st.sampled_from(
        [
            *MARKERS[:4],
            "[redacted]",
            "[redacted",
            "password",
            "api_key",
            "Authorization",
            "token",
            "--password",
            "Bearer ",
            ":",
            "=",
            " ",
            '"',
            "\\",
            "\\n",
            "\n",
            "\t",
            "\x01",
            "://",
            "@",
            "é",
            "AKIA",
            "reason_",
            "sk-",
            "sk-ant-",
            "eyJ",
            ".",
            "/",
            "+",
            "-----BEGIN PRIVATE KEY-----",
            "hunter2",
            "swordfish",
            "A1b2C3d4E5f6G7h8",
            "a" * 20,
            "B" * 13,
            "[redacted-secret]x",
        ]
    ),
    st.text(max_size=3),
)
FRAGMENTED = st.lists(FRAGMENTS, max_size=10).map("".join)
TIERS = st.sampled_from(["standard", "ephemeral", "none"])


@given(secret_values, st.data(), st.sampled_from(["standard", "ephemeral"]))
@settings(max_examples=150)
def test_no_spelling_of_a_secret_survives(secret, data, tier):
    spelled = data.draw(st.sampled_from(spellings(secret)))
    masked = Redactor([secret], tier).text(data.draw(around(spelled)))
    left = without_markers(masked)
    assert not [form for form in spellings(secret.strip()) if form in left]
    assert "[redacted-secret]" in masked


@given(st.lists(secret_values, min_size=1, max_size=3), st.data())
@settings(max_examples=80)
def test_overlapping_secrets_all_go(secrets, data):
    inner = secrets[0].strip()
    secrets += [inner + "tail", "head" + inner, f"x[redacted-secret]{inner}"]
    order = data.draw(st.permutations(secrets))
    redactor = Redactor(order, "ephemeral")
    masked = redactor.text("".join(order) + " " + inner + "tail")
    assert not [secret for secret in secrets if secret.strip() in without_markers(masked)]
    assert "tail" not in masked.rpartition(" ")[2]
    assert redactor.text(masked) == masked


def test_overlapping_finds_leave_no_ends():
    assert Redactor(["abcd1", "d1efg"], "ephemeral").text("-abcd1efg-") == "-[redacted-secret]-"


@pytest.mark.parametrize(
    "spelled",
    [
        "p&quot;q &amp;é",
        "p&amp;#34;q+&#38;%C3%A9",
        "p%2522q%2520%2526%25C3%25A9",
        "p\\x22q &\\xe9",
        "p\\x22q &\\xc3\\xa9",
        "p\\u0022q\\u0020\\u0026\\u00E9",
        "cCJxICbDqQ",  # printf %s | base64
        "IHAicSAmw6kN",  # the same with the whitespace that the value was given with
        "dXNlcjpwInEgJsOp",  # user:value, as HTTP Basic has it
    ],
)
def test_other_spellings_go(spelled):
    masked = Redactor([' p"q &é\r'], "ephemeral").text(f"<{spelled}>")
    assert "[redacted-secret]" in masked
    assert len(masked) <= len("<dXNlcjpw[redacted-secret]>")


def test_secrets_and_markers_do_not_chase_each_other():
    for secret in ("redacted", "acted-secret]", "[redacted-secret]", "]-[r"):
        redactor = Redactor([secret], "standard")
        masked = redactor.text(f"say {secret} or [redacted] now")
        assert masked.startswith("say [")
        assert masked.endswith("or [redacted] now")
        assert redactor.text(masked) == masked
    endless = Redactor(["[redacted-secret]a"], "ephemeral")
    assert endless.text("[redacted-secret]" + "a" * 9) == "[redacted-secret]"


@given(known_credentials, st.data())
@settings(max_examples=150)
def test_known_credentials_go(credential, data):
    kind, value = credential
    masked = Redactor([], "standard").text(data.draw(around(value)))
    assert value not in masked
    assert f"[redacted-{kind}]" in masked or "[redacted]" in masked
    assert Redactor([], "ephemeral").text(value) == value


@given(long_runs, st.data())
@settings(max_examples=60)
def test_no_run_of_40_survives(run, data):
    text = data.draw(around(run))
    assert not re.search(r"[A-Za-z0-9_-]{40}", Redactor([], "standard").text(text))


@given(own_credentials, st.data(), st.sampled_from(["standard", "ephemeral"]))
@settings(max_examples=60)
def test_own_credentials_go_in_both_tiers(credential, data, tier):
    masked = Redactor([], tier).text(data.draw(around(credential)))
    assert credential not in masked
    prefix = next(p for p in ("sk-steno-v1-", "reason_", "ara_") if credential.startswith(p))
    assert prefix + "***" in masked


@given(FRAGMENTED, TIERS, st.lists(FRAGMENTED, max_size=2))
@settings(max_examples=400)
def test_masking_twice_is_masking_once(text, tier, secrets):
    redactor = Redactor(secrets, tier)
    masked = redactor.text(text)
    assert redactor.text(masked) == masked
    if tier == "standard":
        assert not re.search(r"[A-Za-z0-9_-]{40}", masked)
    if tier == "none":
        assert masked == text


@given(known_credentials, st.sampled_from(["\n", '"', "\t"]), st.integers(1, 3))
@settings(max_examples=60)
def test_json_inside_a_string_stays_json(credential, edge, depth):
    text = edge + credential[1] + edge
    for _ in range(depth):
        text = json.dumps({"out": text})
    masked = Redactor([], "standard").text(text)
    for _ in range(depth):
        masked = json.loads(masked)["out"]
    assert credential[1] not in masked


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("key=sk-test-abc123", "key=[redacted-openai-key]"),
        ("x-api-key: fakefakefake", "x-api-key: [redacted-credential]"),
        ("Authorization: Bearer abcdefgh", "Authorization: Bearer [redacted-credential]"),
        ("authorization: Basic dXNlcjpwYXNz", "authorization: Basic [redacted-credential]"),
        ("-H 'X-Auth-Token: 12345678'", "-H 'X-Auth-Token: [redacted-credential]'"),
        ('{"api_key": "abcd1234"}', '{"api_key": "[redacted-credential]"}'),
        ('{\\"password\\":\\"hunter2\\"}', '{\\"password\\":\\"[redacted-credential]\\"}'),
        ("DB_PASSWORD=swordfish", "DB_PASSWORD=[redacted-credential]"),
        ("?api_key=swordfish&x=1", "?api_key=[redacted-credential]&x=1"),
        ("mysql --password hunter2 db", "mysql --password [redacted-credential] db"),
        ("postgres://u:pw@h/db", "postgres://u:[redacted-password]@h/db"),
        ("redis:\\/\\/:pw@h", "redis:\\/\\/:[redacted-password]@h"),
        ("Bearer a1b2c3d4e5", "Bearer [redacted-bearer]"),
        ("AKIAIOSFODNN7EXAMPLE", "[redacted-aws-key]"),
        ("ASIAIOSFODNN7EXAMPLE.", "[redacted-aws-key]."),
        ("sk-steno-v1-abcdefgh", "sk-steno-v1-***"),
        ("reason_" + "aB3" * 8, "reason_***"),
        ("ara_" + "aB3" * 8, "ara_***"),
        ("sha256 " + "0a" * 32, "sha256 [redacted]"),
        ("a" * 40 + "." + "-" * 41, "[redacted].[redacted]"),
    ],
)
def test_shapes(text, masked):
    assert Redactor([], "standard").text(text) == masked


@pytest.mark.parametrize(
    "text",
    [
        "ASIAPACIFIC",
        "the ASIAPACIFIC region, AKIA and ASIA",
        "018f3f2e-7b7a-7cc3-98c4-dc0c0c07398f",
        "2026-01-02T03:04:05.678901Z",
        "commit 0084cee on main, 1a2b3c4d5e6f",
        "/home/someone/projects/service/src/components/Button.tsx:12:4",
        "src/stenograph/trajectories/redaction/masking.py",
        "https://example.com:8080/a/b?q=x@y.org#part",
        "git@github.com:owner/repository.git",
        "ssh://git@host:22/repository",
        "def login(user: str, password: str) -> Token:",
        "token = get_token(request)",
        "login(user=user, password=self.password, token=token)",
        'password = os.environ["DB_PASSWORD"]',
        "password=${DB_PASSWORD} token={{ token }} api_key=<your key>",
        '{"max_tokens": 4096, "prompt_tokens": 123456789}',
        '{"token": "hello", "logprob": -0.25}',
        '{"type": "object", "properties": {"password": {"type": "string"}}}',
        "Bearer authentication needs a bearer certificate.",
        "Tokens: the lexer emits a token, which the parser reads. The secret: practice.",
        "reason_id reason_code reason_not_found reason_not_found_in_this_organization",
        "ara_ara para_graph_of_the_whole_document",
        "task-runner-of-the-build disk-usage-by-folder risk-assessment",
        "call_a7670666366044b091b608f5 toolu_aba82235bab0457ba1340cdf",
        "'-----BEGIN PRIVATE KEY-----' opens a key, '-----END PRIVATE KEY-----' ends it",
        "npm_config_registry hf_hub_download sk-learn eyJ",
        "x" * 39,
        "日本語のテキスト 🙂 \x1b[31mred\x1b[0m \x00",
    ],
)
def test_ordinary_text_stays(text):
    assert Redactor([], "standard").text(text) is text


def test_lone_surrogates_pass():
    assert Redactor(["hunter2"], "standard").text("\ud800 hunter2") == "\ud800 [redacted-secret]"


def test_short_secrets_are_not_looked_for():
    short = "x" * (MIN_SECRET_LENGTH - 1)
    assert Redactor([short, f" {short}\n", ""], "standard").text("axxxa") == "axxxa"
    assert Redactor([short + "y"], "standard").text(short + "y") == "[redacted-secret]"


def test_each_line_of_a_long_secret_goes():
    secret = "line-one-1\r\n  line-two-2\nshort\n"
    masked = Redactor([secret], "ephemeral").text("> line-two-2\n> short\n> line-one-1")
    assert masked == "> [redacted-secret]\n> short\n> [redacted-secret]"


def test_markers_are_counted():
    redactor = Redactor(["hunter2"], "standard")
    redactor.text("hunter2 hunter2 " + "a" * 41 + " [redacted]")
    redactor.text("AKIAIOSFODNN7EXAMPLE hunter2")
    redactor.text("nothing")
    assert redactor.counts == {"[redacted-secret]": 3, "[redacted]": 1, "[redacted-aws-key]": 1}
