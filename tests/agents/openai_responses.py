"""OpenAI's Responses."""

import json
from collections.abc import Iterator

from agents.turns import Answer, Json, Reply, Tool, text_of

ENDINGS = ("/responses",)


def tools(request: Json) -> list[Tool]:
    return [
        Tool(tool["name"], tool.get("parameters", {}))
        for tool in request.get("tools", ())
        if tool.get("type") == "function"
    ]


def history(request: Json) -> list[Json]:
    items = request.get("input", ())
    return [{"role": "user", "content": items}] if isinstance(items, str) else list(items)


def results(request: Json) -> Iterator[tuple[str, str]]:
    for item in history(request):
        if item.get("type") == "function_call_output":
            yield item["call_id"], text_of(item.get("output"))


def schema(request: Json) -> Json | None:
    wanted = request.get("text", {}).get("format") or {}
    return wanted.get("schema")


def reply(request: Json, answer: Answer) -> Reply:
    item = _item(answer)
    response: Json = {
        "id": f"resp_{answer.id}",
        "object": "response",
        "created_at": 0,
        "status": "completed",
        "model": request.get("model", "mock"),
        "output": [item],
        "error": None,
        "usage": {
            "input_tokens": 10,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 1,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 11,
        },
    }
    if not request.get("stream"):
        return response
    events = _events(response, item)
    return [
        (name, {"type": name, "sequence_number": number, **data})
        for number, (name, data) in enumerate(events)
    ]


def _item(answer: Answer) -> Json:
    if answer.call is None:
        part = {"type": "output_text", "text": answer.text, "annotations": []}
        message = {"id": f"msg_{answer.id}", "type": "message", "role": "assistant"}
        return {**message, "status": "completed", "content": [part]}
    return {
        "id": f"fc_{answer.id}",
        "type": "function_call",
        "status": "completed",
        "call_id": answer.call.id,
        "name": answer.call.tool,
        "arguments": json.dumps(answer.call.arguments),
    }


def _events(response: Json, item: Json) -> Iterator[tuple[str, Json]]:
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    at = {"item_id": item["id"], "output_index": 0}
    yield "response.created", {"response": begun}
    if item["type"] == "message":
        text = item["content"][0]["text"]
        empty = {**item, "status": "in_progress", "content": []}
        yield "response.output_item.added", {"output_index": 0, "item": empty}
        yield "response.output_text.delta", {**at, "content_index": 0, "delta": text}
        yield "response.output_text.done", {**at, "content_index": 0, "text": text}
    else:
        empty = {**item, "status": "in_progress", "arguments": ""}
        yield "response.output_item.added", {"output_index": 0, "item": empty}
        yield "response.function_call_arguments.delta", {**at, "delta": item["arguments"]}
        yield "response.function_call_arguments.done", {**at, "arguments": item["arguments"]}
    yield "response.output_item.done", {"output_index": 0, "item": item}
    yield "response.completed", {"response": response}
