"""What a scripted model is asked and answers, whichever interface the agent speaks."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as an agent offers it: its name and the JSON schema of its arguments."""

    name: str
    schema: Mapping[str, Any] = field(default_factory=dict)

    @property
    def parameters(self) -> Mapping[str, Any]:
        found = self.schema.get("properties")
        return found if isinstance(found, dict) else {}


@dataclass(frozen=True, slots=True)
class Call:
    """The model calls a tool."""

    id: str
    tool: str
    arguments: Json


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of the model: a text, or a call. ``id`` tells it from all others."""

    id: str
    text: str = ""
    call: Call | None = None


Event = tuple[str | None, Any]
"""One event of a stream: its name, where the interface names them, and its data."""

Reply = Json | list[Event]
"""One document, or the events of a stream."""


def strings(value: object) -> Iterator[str]:
    """Yield every text in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)


_TEXTS = ("text", "output", "content", "error")
"""Where parts of messages hold their text."""


def text_of(content: object) -> str:
    """Return the text of a message's or a result's content: a string, or parts that hold some."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(map(text_of, content))
    if isinstance(content, dict):
        return next((text_of(content[key]) for key in _TEXTS if key in content), "")
    return ""
