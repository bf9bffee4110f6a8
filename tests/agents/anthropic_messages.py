"""Anthropic's Messages."""

import json
from collections.abc import Iterator

from agents.turns import Answer, Json, Reply, Tool, text_of

ENDINGS = ("/messages",)


def tools(request: Json) -> list[Tool]:
    return [Tool(tool["name"], tool.get("input_schema", {})) for tool in request.get("tools", ())]


def history(request: Json) -> list[Json]:
    return list(request.get("messages", ()))


def results(request: Json) -> Iterator[tuple[str, str]]:
    for message in history(request):
        content = message.get("content")
        for block in content if isinstance(content, list) else ():
            if block.get("type") == "tool_result":
                yield block["tool_use_id"], text_of(block.get("content"))


def schema(request: Json) -> Json | None:
    wanted = request.get("output_config", {}).get("format") or {}
    return wanted.get("schema")


def reply(request: Json, answer: Answer) -> Reply:
    block: Json = {"type": "text", "text": answer.text}
    if answer.call is not None:
        call = answer.call
        block = {"type": "tool_use", "id": call.id, "name": call.tool, "input": call.arguments}
    message = {
        "id": f"msg_{answer.id}",
        "type": "message",
        "role": "assistant",
        "model": request.get("model", "mock"),
        "content": [block],
        "stop_reason": "end_turn" if answer.call is None else "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 1},
    }
    if not request.get("stream"):
        return message
    return [(name, {"type": name, **data}) for name, data in _events(message, block)]


def _events(message: Json, block: Json) -> Iterator[tuple[str, Json]]:
    if block["type"] == "text":
        empty = {**block, "text": ""}
        delta = {"type": "text_delta", "text": block["text"]}
    else:
        empty = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield "message_start", {"message": {**message, "content": [], "stop_reason": None}}
    yield "content_block_start", {"index": 0, "content_block": empty}
    yield "content_block_delta", {"index": 0, "delta": delta}
    yield "content_block_stop", {"index": 0}
    yield "message_delta", {"delta": end, "usage": {"output_tokens": 1}}
    yield "message_stop", {}
