"""Gemini's generateContent."""

from collections.abc import Iterator

from agents.turns import Answer, Json, Reply, Tool, text_of

ENDINGS = (":generateContent", ":streamGenerateContent")


def tools(request: Json) -> list[Tool]:
    return [
        Tool(known["name"], known.get("parametersJsonSchema") or known.get("parameters", {}))
        for tool in request.get("tools", ())
        for known in tool.get("functionDeclarations", ())
    ]


def history(request: Json) -> list[Json]:
    return list(request.get("contents", ()))


def results(request: Json) -> Iterator[tuple[str, str]]:
    for content in history(request):
        for part in content.get("parts", ()):
            if "functionResponse" in part:
                found = part["functionResponse"]
                yield found.get("id", ""), text_of(found.get("response"))


def schema(request: Json) -> Json | None:
    wanted = request.get("generationConfig", {})
    found: Json | None = wanted.get("responseJsonSchema") or wanted.get("responseSchema")
    return found


def reply(request: Json, answer: Answer) -> Reply:
    part: Json = {"text": answer.text}
    if answer.call is not None:
        call = answer.call
        part = {"functionCall": {"id": call.id, "name": call.tool, "args": call.arguments}}
    content = {"role": "model", "parts": [part]}
    document: Json = {
        "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {
            "promptTokenCount": 10,
            "candidatesTokenCount": 1,
            "totalTokenCount": 11,
        },
        "modelVersion": "mock",
    }
    return [(None, document)] if request.get("stream") else document
