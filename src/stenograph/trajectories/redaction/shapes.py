r"""Shapes of credentials, as RE2 patterns over the UTF-8 bytes of a string.

Each shape has two patterns. `find` says exactly what is masked in a string. `scan` is looser and
holds on the string's JSON spelling too, so bytes in which no `scan` matches need no masking at all.
What makes that true: a pattern names only characters that JSON never escapes; where it allows
whitespace, a quote or a slash it allows their escapes (`\t`, `\\\"`, `\/`) as well; and `scan` asks
for no word boundary in front, since an escape such as `\n` puts a letter there.

The list follows the token formats that their issuers publish, as gitleaks and GitHub's secret
scanning collect them; lengths are lower bounds, so that made-up and shortened keys count too.
"""

from collections.abc import Callable
from dataclasses import dataclass

from stenograph.trajectories.redaction import doubts

#: In front of a shape whose first letters also end words (`task-…`): a non-word or an escape.
_LEAD = rb"(?:^|[^A-Za-z0-9]|\\[nrtbf]|\\u[0-9a-fA-F]{4}|%[0-9A-Fa-f]{2})"
_SPACE = rb"(?:[ \t]|\\+t)"
_QUOTE = rb"\\*[\"'`]"
_SLASH = rb"\\*/"


@dataclass(frozen=True, slots=True)
class Shape:
    """One kind of credential; `find`'s first group, or all of it, is what the marker replaces.

    One of `hints` stands in every find, in either case; with none, anything may be one.
    `accept(text, match_start, start, end)` may spare a find that is code or prose after all.
    """

    marker: str
    hints: tuple[bytes, ...]
    find: bytes
    scan: bytes
    accept: Callable[[bytes, int, int, int], bool] | None = None


def _plain(kind: str, hint: bytes, pattern: bytes) -> Shape:
    return Shape(f"[redacted-{kind}]", (hint,), pattern, pattern)


def _led(marker: str, hint: bytes, pattern: bytes) -> Shape:
    return Shape(marker, (hint,), _LEAD + rb"(" + pattern + rb")", pattern)


#: What a credential is called, at the end of a longer name too (`DB_PASSWORD`, `x-api-key`).
CREDENTIAL_NAME = (
    rb"(?i:pass(?:word|wd|phrase)|pwd|secret|token|credential|authorization"
    rb"|(?:api|access|secret|account|auth|signing|encryption|master)[_. -]?key"
    rb"|connection[_-]?string)"
)
_NAME_HINTS = (b"pass", b"pwd", b"secret", b"token", b"credential", b"authori", b"key", b"string")
#: How an HTTP header says what kind of credential follows.
SCHEME = rb"(?i:bearer|basic|token|digest|apikey|negotiate)" + _SPACE + rb"+"

_FLAG = rb"(?:[a-z0-9]+-){0,3}" + CREDENTIAL_NAME
_SEPARATOR = rb"(?:" + _QUOTE + rb")?" + _SPACE + rb"*[:=]"
_BEFORE_VALUE = _SPACE + rb"*(?:" + _QUOTE + rb")?"
_VALUE = (
    rb"([^\x00-\x20\"'`\\,;&<>(){}\[\]|$]"
    rb"[^\x00-\x20\"'`\\,;&<>(){}\[\]|]{3,})"
)
_PEM = rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY"
_AWS_ID = rb"(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}"
_AWS_SECRET_END = rb"(?:[^A-Za-z0-9/+=._-]|$)"
_USERINFO = rb":" + _SLASH + _SLASH + rb"[^\x00-\x20\"'`\\/:@?#<>\[\]]*:"

#: Credentials that this server issues; masked in ephemeral exports too.
OWN_CREDENTIALS: tuple[Shape, ...] = (
    Shape(
        "sk-steno-v1-***",
        (b"sk-steno-v1-",),
        rb"sk-steno-v1-[A-Za-z0-9_-]{8,}",
        rb"sk-steno-v1-[A-Za-z0-9_-]{8}",
    ),
    *(
        shape
        for prefix in (b"reason_", b"ara_")
        for shape in (
            _led(prefix.decode() + "***", prefix, prefix + rb"[A-Za-z0-9]{20,}[A-Za-z0-9_-]*"),
            Shape(
                prefix.decode() + "***",
                (prefix,),
                _LEAD + rb"(" + prefix + rb"[A-Za-z0-9_-]{20,})",
                prefix + rb"[A-Za-z0-9_-]{20}",
                doubts.is_random,
            ),
        )
    ),
)

UNBROKEN_RUN = Shape("[redacted]", (), rb"[A-Za-z0-9_-]{40,}", rb"[A-Za-z0-9_-]{40}")

KNOWN_CREDENTIALS: tuple[Shape, ...] = (
    Shape(
        "[redacted-private-key]",
        (b"private key",),
        _PEM
        + rb"(?: BLOCK)?-----(?:[A-Za-z0-9+/=:,.\s]|-[A-Za-z0-9]|\\+[nrt/])*"
        + rb"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?",
        _PEM,
        doubts.has_key_body,
    ),
    Shape(
        "[redacted-aws-key]",
        (b"a3t", b"akia", b"asia", b"abia", b"acca"),
        rb"(" + _AWS_ID + rb")(?:[^A-Z0-9]|$)",
        _AWS_ID + rb"(?:[^A-Z0-9]|$)",
    ),
    _plain("github-token", b"gh", rb"gh[pousr]_[A-Za-z0-9]{20,}"),
    _plain("github-token", b"github_pat_", rb"github_pat_[A-Za-z0-9_]{20,}"),
    _plain(
        "gitlab-token",
        b"gl",
        rb"gl(?:pat|oas|dt|rt|rtr|cbt|ptt|ft|imt|agent|soat|ffct)-[A-Za-z0-9_-]{16,}",
    ),
    _led("[redacted-anthropic-key]", b"sk-ant-", rb"sk-ant-[A-Za-z0-9_-]{8,}"),
    _led(
        "[redacted-openai-key]",
        b"sk-",
        rb"sk-(?:(?:proj|svcacct|admin|service|None|test|live)-[A-Za-z0-9_-]{6,}"
        rb"|[A-Za-z0-9]{20,})",
    ),
    _led("[redacted-openrouter-key]", b"sk-or-", rb"sk-or-(?:v1-)?[A-Za-z0-9]{16,}"),
    _plain("google-key", b"aiza", rb"AIza[A-Za-z0-9_-]{20,}"),
    _plain("google-key", b"ya29", rb"ya29\.[A-Za-z0-9_-]{20,}"),
    _plain("google-key", b"gocspx", rb"GOCSPX-[A-Za-z0-9_-]{16,}"),
    _plain("slack-token", b"xox", rb"xox[abeoprs]-[A-Za-z0-9-]{10,}"),
    _plain("slack-token", b"xapp-", rb"xapp-[0-9]-[A-Za-z0-9-]{10,}"),
    _plain(
        "slack-webhook",
        b"hooks.slack.com",
        rb"hooks\.slack\.com" + _SLASH + rb"services(?:" + _SLASH + rb"[A-Za-z0-9]{6,}){2,3}",
    ),
    _plain("stripe-key", b"k_", rb"[srp]k_(?:live|test)_[A-Za-z0-9]{10,}"),
    _plain("stripe-key", b"whsec_", rb"whsec_[A-Za-z0-9+/=]{16,}"),
    _plain("jwt", b"eyj", rb"eyJ[A-Za-z0-9_-]{5,}\.eyJ[A-Za-z0-9_-]{2,}(?:\.[A-Za-z0-9_-]*)?"),
    _plain("jwt", b"eyj", rb"eyJ[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*){3}\.[A-Za-z0-9_-]+"),
    _plain("npm-token", b"npm_", rb"npm_[A-Za-z0-9]{30,}"),
    _plain("pypi-token", b"pypi-ag", rb"pypi-Ag[A-Za-z0-9_-]{16,}"),
    _plain("huggingface-token", b"hf_", rb"hf_[A-Za-z0-9]{20,}"),
    _plain("sendgrid-key", b"sg.", rb"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    _plain("databricks-token", b"dapi", rb"dapi[a-f0-9]{32}"),
    _plain("docker-token", b"dckr_pat_", rb"dckr_pat_[A-Za-z0-9_-]{16,}"),
    _plain("shopify-token", b"shp", rb"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"),
    _plain("vault-token", b"hv", rb"hv[sb]\.[A-Za-z0-9_-]{20,}"),
    _plain("linear-key", b"lin_api_", rb"lin_api_[A-Za-z0-9]{20,}"),
    _plain("replicate-token", b"r8_", rb"r8_[A-Za-z0-9]{30,}"),
    _led("[redacted-groq-key]", b"gsk_", rb"gsk_[A-Za-z0-9]{20,}"),
    _led("[redacted-xai-key]", b"xai-", rb"xai-[A-Za-z0-9]{20,}"),
    _led("[redacted-telegram-token]", b":aa", rb"[0-9]{8,10}:AA[A-Za-z0-9_-]{33}"),
    Shape(
        "[redacted-bearer]",
        (b"bearer",),
        rb"(?i:bearer)" + _SPACE + rb"+([A-Za-z0-9._~+/=-]{8,})",
        rb"(?i:bearer)" + _SPACE + rb"+[A-Za-z0-9._~+/=-]{8}",
        doubts.is_bearer,
    ),
    Shape(
        "[redacted-password]",
        (b"@",),
        _USERINFO + rb"([^\x00-\x20\"'`\\/?#<>\[\]]+)@",
        _USERINFO + rb"[^\x00-\x20\"'`\\/?#<>\[\]]+@",
        doubts.is_literal,
    ),
    Shape(
        "[redacted-credential]",
        (b"authorization",),
        rb"(?i:authorization)" + _SEPARATOR + _BEFORE_VALUE + SCHEME + _VALUE,
        rb"(?i:authorization)" + _SEPARATOR,
        doubts.is_literal,
    ),
    Shape(
        "[redacted-credential]",
        _NAME_HINTS,
        CREDENTIAL_NAME + _SEPARATOR + _BEFORE_VALUE + _VALUE,
        CREDENTIAL_NAME + _SEPARATOR,
        doubts.is_assigned,
    ),
    Shape(
        "[redacted-credential]",
        _NAME_HINTS,
        rb"--" + _FLAG + _SPACE + rb"+(?:" + _QUOTE + rb")?" + _VALUE,
        rb"--" + _FLAG + _SPACE,
        doubts.is_flag_value,
    ),
    # An AWS secret access key is any 40 characters of base64.
    Shape(
        "[redacted-aws-secret]",
        (),
        rb"(?:^|[^A-Za-z0-9/+._-]|\\[nrtbf])([A-Za-z0-9/+]{40})" + _AWS_SECRET_END,
        rb"(?:^|[^A-Za-z0-9/+._-]|\\[nrtbf]|\\u00[01][0-9a-f])[A-Za-z0-9/+]{40}" + _AWS_SECRET_END,
        doubts.is_aws_secret,
    ),
)
