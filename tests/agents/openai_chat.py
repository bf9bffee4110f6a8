"""OpenAI's Chat Completions, which most other makers offer as well."""

import json
from collections.abc import Iterator

from agents.turns import Answer, Event, Json, Reply, Tool, text_of

ENDINGS = ("/chat/completions",)


def tools(request: Json) -> list[Tool]:
    functions = [tool["function"] for tool in request.get("tools", ()) if "function" in tool]
    return [Tool(function["name"], function.get("parameters", {})) for function in functions]


def history(request: Json) -> list[Json]:
    return list(request.get("messages", ()))


def results(request: Json) -> Iterator[tuple[str, str]]:
    for message in history(request):
        if message.get("role") == "tool":
            yield message["tool_call_id"], text_of(message.get("content"))


def schema(request: Json) -> Json | None:
    wanted = request.get("response_format") or {}
    found: Json | None = wanted.get("json_schema", {}).get("schema")
    return found


def reply(request: Json, answer: Answer) -> Reply:
    message: Json = {"role": "assistant", "content": answer.text}
    if answer.call is not None:
        function = {
            "name": answer.call.tool,
            "arguments": json.dumps(answer.call.arguments),
        }
        message["tool_calls"] = [
            {"index": 0, "id": answer.call.id, "type": "function", "function": function}
        ]
    finish = "stop" if answer.call is None else "tool_calls"
    base = {"id": f"chatcmpl-{answer.id}", "created": 0, "model": request.get("model", "mock")}
    usage = {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11}
    if not request.get("stream"):
        choice = {"index": 0, "message": message, "finish_reason": finish}
        return {**base, "object": "chat.completion", "choices": [choice], "usage": usage}
    base["object"] = "chat.completion.chunk"
    events: list[Event] = [
        (None, {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
        for delta, reason in ((message, None), ({}, finish))
    ]
    return [*events, (None, {**base, "choices": [], "usage": usage}), (None, "[DONE]")]
