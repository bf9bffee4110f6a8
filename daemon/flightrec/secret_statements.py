"""Secrets that stand apart from their names, or are told in a sentence.

Markup, pairs of name and value, netrc files, manifests; ``The new token is: x``.
"""

from flightrec.lazy_pattern import lazy_pattern
from flightrec.secret_names import Spans, Trust, classify_name
from flightrec.secret_values import is_harmless, looks_random

_MARKUP = lazy_pattern(r"<(?P<name>[\w:.-]{2,64})(?:\s[^<>]{0,200})?>(?P<value>[^<>\n]{1,2000})</")
_PAIRED = lazy_pattern(
    r"(?i)(?<!\w)\w{0,20}?(?:name|key)\\{0,3}[\"']?\s{0,3}[:=]\s{0,3}\\{0,3}[\"']?"
    r"(?P<name>[\w.\-]{2,80})\\{0,3}[\"']?\s{0,3}[,;]?\s{0,60}"
    r"\\{0,3}[\"']?\w{0,20}?value\\{0,3}[\"']?\s{0,3}[:=]\s{0,3}"
    r"(?:\\{0,3}\"(?P<double>[^\"\n]{1,4000}?)\\{0,3}\"|'(?P<single>[^'\n]{1,4000})'"
    r"|(?P<value>[^\s\"',;{}<>\[\]]{1,4000}))"
)
_NETRC = lazy_pattern(
    r"\b(?:login|user|account)\s{1,8}\S{1,100}\s{1,8}password\s{1,8}[\"']?(?P<value>[^\s\"']{1,400})"
)


def find_paired(text: str) -> Spans:
    """Yield values that stand apart from their name: markup, name/value pairs, netrc."""
    for pattern in (_MARKUP, _PAIRED):
        for match in pattern.finditer(text):
            named = classify_name(match["name"])
            if named is None:
                continue
            group = match.lastgroup or "value"
            value = match[group]
            believed = named.trust is Trust.SURE or looks_random(value)
            if believed and not is_harmless(value, named.kind):
                yield *match.span(group), named.kind


def find_netrc(text: str) -> Spans:
    """Yield the passwords of ``machine … login … password …``."""
    for match in _NETRC.finditer(text):
        if not is_harmless(match["value"], "pass"):
            yield *match.span("value"), "pass"


_STATED = lazy_pattern(
    r"(?i)\b(?P<name>pass(?:word|wd|phrase|code)|(?:api|access|root|auth|bearer|personal|admin"
    r"|session|join|bot|refresh|registration)[ -](?:key|token)|(?:client|app|shared)[ -]secret"
    r"|(?:private|secret|unseal|recovery|encryption|license|master)[ -]key|token)\b"
    r"(?P<between>[\w .,'@()-]{0,60})(?:\b(?:is|was)\b:?|:|=)\s{1,3}"
    r"[\"'`]?(?P<value>[^\s\"'`]{8,400})"
)
_NO_STATEMENT = lazy_pattern(
    r"(?i)\b(?:fingerprint|public|ids?|file|files|path|hash|digest|sha\d*|md5|checksum|url|type|name"
    r"|line|column|position|expire[sd]?|policy|length|count)\b"
)
_NO_STATED = lazy_pattern(r"SHA256:|MD5:|\w\(|\w\[|://")
_SYMBOL = lazy_pattern(r"[!#$%&*+?@^_~|<>(){}\[\];,/=]")
_GIVEN = lazy_pattern(
    r"(?i)\b(?:using|with|invalid|bad|wrong|incorrect|rejected|old|new)\s{1,3}(?:the\s{1,3})?"
    r"(?P<name>password|passphrase|token|api[ -]key|access[ -]key|secret)(?P<between>)"
    r"\s{1,3}[\"'`]?(?P<value>[^\s\"'`]{8,400})"
)


def find_stated(text: str) -> Spans:
    """Yield what programs tell: ``A temporary password is generated for root: x``."""
    for pattern in (_STATED, _GIVEN):
        for match in pattern.finditer(text):
            value = match["value"].rstrip(".,;)")
            if _NO_STATEMENT.search(match["between"]) or _NO_STATED.search(value):
                continue
            if _is_drawn(value) and not is_harmless(value, "token"):
                named = classify_name(match["name"].replace(" ", "-"))
                start = match.start("value")
                yield start, start + len(value), named.kind if named else "secret"


def _is_drawn(value: str) -> bool:
    if looks_random(value):
        return True
    mixed = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    return mixed and _SYMBOL.search(value) is not None


_SECRET_DATA = lazy_pattern(r"(?m)^(?P<indent>[ \t]{0,20})(?:stringData|data):[ \t]{0,8}\r?\n")
_DATA_LINE = lazy_pattern(
    r"(?P<indent>[ \t]{1,40})[\w.\-/]{1,128}:[ \t]{1,8}[\"']?"
    r"(?P<value>[^\s\"'|>][^\n\"']{0,4000})[^\n]{0,2}\n?"
)
_SECRET_JSON = lazy_pattern(r"\"(?:stringData|data)\":\s{0,4}\{(?P<data>[^{}]{1,12000})\}")
_JSON_VALUE = lazy_pattern(r":\s{0,4}\"(?P<value>[^\"\n]{1,4000})\"")


def find_manifest_data(text: str) -> Spans:
    """Yield all values of a Kubernetes manifest of kind Secret, whatever their names."""
    for head in _SECRET_DATA.finditer(text):
        position = head.end()
        while (line := _DATA_LINE.match(text, position)) is not None:
            if len(line["indent"]) <= len(head["indent"]):
                break
            if not is_harmless(line["value"], "secret"):
                yield *line.span("value"), "secret"
            position = line.end()
    for block in _SECRET_JSON.finditer(text):
        for match in _JSON_VALUE.finditer(text, *block.span("data")):
            if not is_harmless(match["value"], "secret"):
                yield *match.span("value"), "secret"
