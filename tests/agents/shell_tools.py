"""Finds the tool by which an agent runs commands, among those that it offers, and fills it in."""

from collections.abc import Mapping, Sequence
from typing import Any

from agents.turns import Json, Tool

NAMES = (
    "bash",
    "exec_command",
    "shell_command",
    "run_shell_command",
    "run_terminal_command",
    "run_commands",
    "run_command",
    "execute_command",
    "execute",
    "shell",
)
"""In the order of preference, compared without case."""

COMMAND_PARAMETERS = ("command", "cmd", "commands")


def find_shell_tool(tools: Sequence[Tool]) -> Tool | None:
    """Return the tool that runs a command; None where the agent offers none."""
    by_name = {tool.name.lower(): tool for tool in tools}
    return next((by_name[name] for name in NAMES if name in by_name), None)


def arguments_for(tool: Tool, command: str) -> Json:
    """Return arguments with the command and whatever else the tool insists on."""
    target = next((name for name in COMMAND_PARAMETERS if name in tool.parameters), "command")
    chosen: Json = {target: _as(tool.parameters.get(target, {}), command)}
    for name in tool.schema.get("required", ()):
        chosen.setdefault(name, smallest(tool.parameters.get(name, {})))
    return chosen


def _as(schema: Mapping[str, Any], command: str) -> object:
    """Return a command as a text or as a list of one, as the schema wants it."""
    if "array" not in _types(schema) or "string" in _types(schema):
        return command
    item = schema.get("items", {})
    if "object" in _types(item) and "string" not in _types(item):
        return [arguments_for(Tool("", item), command)]
    return [command]


def _types(schema: Mapping[str, Any]) -> list[str]:
    """Return the types that a schema allows; one interface writes them in capitals."""
    kind = schema.get("type", [])
    found = [kind] if isinstance(kind, str) else list(kind)
    for branch in schema.get("anyOf", ()):
        found += _types(branch)
    return [name.lower() for name in found]


_EMPTY: Mapping[str, object] = {"array": [], "boolean": False, "integer": 60, "number": 60}
"""The smallest value of a type; a text for the others."""


def smallest(schema: Mapping[str, Any]) -> object:
    """Return the smallest value that a JSON schema takes."""
    for value in (schema.get("default"), schema.get("const"), *schema.get("enum", ())):
        if value is not None:
            return value
    if schema.get("anyOf"):
        return smallest(schema["anyOf"][0])
    kind = next(iter(_types(schema)), "string")
    if kind == "object":
        known = schema.get("properties", {})
        return {name: smallest(known.get(name, {})) for name in schema.get("required", ())}
    return _EMPTY.get(kind, "text")
