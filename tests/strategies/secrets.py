"""Made-up secrets, credentials of known shapes, and JSON with either planted in it."""

import base64
import json
from typing import Any
from urllib.parse import quote

from hypothesis import strategies as st

from stenograph.trajectories.redaction import MARKERS, MIN_SECRET_LENGTH

_ALNUM = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


def _random(alphabet: str, low: int, high: int | None = None) -> st.SearchStrategy[str]:
    return st.text(alphabet, min_size=low, max_size=high or low)


#: Values a run may hold: plain, with everything JSON escapes, of several lines, of digits only.
secret_values: st.SearchStrategy[str] = st.one_of(
    st.text(_ALNUM + "-_.", min_size=6, max_size=30),
    st.text("aZ9\"'\\/\n\r\t\x01\x1b +&<>=%é\u2028😀", min_size=MIN_SECRET_LENGTH, max_size=16),
    st.lists(st.text(_ALNUM + ' "/+', min_size=8, max_size=20), min_size=2, max_size=3).map(
        "\n".join
    ),
    st.text("0123456789", min_size=6, max_size=12),
).filter(lambda value: len(value.strip()) >= MIN_SECRET_LENGTH)


def _after(prefix: str, low: int, high: int, alphabet: str = _ALNUM) -> st.SearchStrategy[str]:
    return _random(alphabet, low, high).map(lambda body: prefix + body)


_BASE64URL = _ALNUM + "-_"
_SHAPES = {
    "aws-key": _after("AKIA", 16, 16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"),
    "github-token": st.one_of(_after("ghp_", 36, 36), _after("github_pat_", 22, 82)),
    "gitlab-token": _after("glpat-", 20, 20),
    "anthropic-key": _after("sk-ant-api03-", 20, 95, _BASE64URL),
    "openai-key": st.one_of(_after("sk-proj-", 20, 60, _BASE64URL), _after("sk-", 48, 48)),
    "google-key": _after("AIza", 35, 35, _BASE64URL),
    "slack-token": _after("xoxb-", 24, 50, _ALNUM + "-"),
    "stripe-key": _after("sk_live_", 24, 24),
    "npm-token": _after("npm_", 36, 36),
    "pypi-token": _after("pypi-AgEIcHlwaS5vcmc", 30, 60, _BASE64URL),
    "huggingface-token": _after("hf_", 34, 34),
    "sendgrid-key": st.builds("SG.{}.{}".format, _random(_BASE64URL, 22), _random(_BASE64URL, 43)),
    "jwt": st.builds(
        "eyJ{}.eyJ{}.{}".format, *(_random(_BASE64URL, low, 60) for low in (10, 10, 20))
    ),
    "private-key": st.builds(
        "-----BEGIN {0}PRIVATE KEY-----\n{1}\n-----END {0}PRIVATE KEY-----".format,
        st.sampled_from(["", "RSA ", "EC ", "OPENSSH "]),
        st.lists(_random(_ALNUM + "+/", 64), min_size=1, max_size=3).map("\n".join),
    ),
}
#: Credentials of known shapes, as (kind, value); the whole value is what must go.
known_credentials: st.SearchStrategy[tuple[str, str]] = st.one_of(
    [st.tuples(st.just(kind), values) for kind, values in _SHAPES.items()]
)
#: Credentials of the kinds that this server issues.
own_credentials: st.SearchStrategy[str] = st.one_of(
    _after("sk-steno-v1-", 24, 43, _BASE64URL), _after("reason_", 24, 43), _after("ara_", 24, 43)
)
#: Runs of 40 and more.
long_runs: st.SearchStrategy[str] = st.text(_BASE64URL, min_size=40, max_size=90)

#: Text around a planted value that does not lengthen it: no letter, digit, `-` or `_` touches it.
_EDGES = ["", " ", "\n", "\t", '"', "(", "é", "\u2028", "/", "=", "\x1b", ", "]


def spellings(secret: str) -> list[str]:
    """Return `secret` as it is and as JSON (three deep, both ways), URLs and base64 write it."""
    forms = [secret]
    for ensure_ascii in (True, False):
        spelled = secret
        for _ in range(3):
            spelled = json.dumps(spelled, ensure_ascii=ensure_ascii)[1:-1]
            forms += [spelled, spelled.replace("/", "\\/")]
    raw = secret.encode()
    forms += [quote(secret, safe=""), quote(secret), quote(quote(secret, safe=""), safe="")]
    forms += [base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode()]
    return list(dict.fromkeys(forms))


@st.composite
def around(draw: st.DrawFn, value: str) -> str:
    """Put `value` into a text, or into JSON inside that text, up to three levels down."""
    text = draw(st.sampled_from(_EDGES)) + value + draw(st.sampled_from(_EDGES))
    for _ in range(draw(st.integers(0, 3))):
        key = draw(st.sampled_from(["a", "note", "stdout"]))
        text = json.dumps({key: text}, ensure_ascii=draw(st.booleans()))
    return draw(st.sampled_from(["", "see: "])) + text + draw(st.sampled_from(["", " ok"]))


def json_values(strings: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    """Return JSON values whose strings and keys come from `strings`."""
    leaves = st.one_of(
        strings, st.integers(-(10**50), 10**50), st.booleans(), st.none(), st.floats(-1e9, 1e9)
    )
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3), st.dictionaries(strings, inner, max_size=3)
        ),
        max_leaves=8,
    )


def strings_in(value: Any) -> list[str]:
    """Return every string of a JSON value: values, keys, and numbers as they are spelled."""
    if isinstance(value, dict):
        return [s for item in value.items() for part in item for s in strings_in(part)]
    if isinstance(value, list):
        return [s for item in value for s in strings_in(item)]
    return [value if isinstance(value, str) else json.dumps(value)]


def without_markers(text: str) -> str:
    """Return `text` with a NUL for each marker, so that what else is there can be looked at."""
    for marker in MARKERS:
        text = text.replace(marker, "\0")
    return text
