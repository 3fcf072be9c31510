"""The local API as the `openai` package of Python sees it. Usage: python api_openai.py LECTERN (in the environment that has
the package). Prints one line per check; the exit status is 0 only when all of them held."""

import json
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import openai
from api_served import served

PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8/5+hHgAHggJ/PchI7wAAAABJRU5ErkJggg=="
)
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
COUNT = 0


def held(name):
    global COUNT
    COUNT += 1
    print(f"ok {COUNT} {name}", flush=True)


def user(content):
    return [{"role": "user", "content": content}]


def refused(kind, code, ask):
    try:
        ask()
    except kind as error:
        assert error.code == code, (error.code, code)
        assert set(error.body) >= {"message", "type", "code", "param"}, error.body
    else:
        raise AssertionError(f"served in place of {code}")


def checks(client, chat, url, upstream):
    assert "upstream" in [model.id for model in client.models.list()]
    assert client.models.retrieve("upstream").object == "model"
    held("models")
    answer = chat(messages=user("hi"))
    assert answer.choices[0].message.content == "Grüß Gott, Welt.", answer
    assert answer.usage.total_tokens == 16
    held("plain")
    pieces, usage = [], None
    for chunk in chat(messages=user("hi"), stream=True, stream_options={"include_usage": True}):
        pieces += [choice.delta.content or "" for choice in chunk.choices]
        usage = chunk.usage or usage
    assert "".join(pieces) == "Grüß Gott, Welt." and usage.completion_tokens == 5
    held("streaming with usage")
    for count in (1, 2, 5):
        messages = user(f"calls {count}")
        with client.chat.completions.stream(model="upstream", messages=messages, tools=[TOOL]) as stream:
            message = stream.get_final_completion().choices[0].message
        assert len({call.id for call in message.tool_calls}) == count
        assert [json.loads(call.function.arguments)["city"] for call in message.tool_calls] == [str(n) for n in range(count)]
        results = [
            {"role": "tool", "tool_call_id": call.id, "content": f"r{number}"}
            for number, call in enumerate(message.tool_calls)
        ]
        back = [*messages, message.model_dump(exclude_none=True, exclude={"parsed"}), *results]
        for entry in back[1].get("tool_calls", []):
            entry["function"].pop("parsed_arguments", None)
        answer = chat(messages=back, tools=[TOOL])
        assert answer.choices[0].message.content == " and ".join(f"r{number}" for number in range(count)), answer
        held(f"tools, {count} at once, and back")
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string"}, "degrees": {"type": "number"}},
        "required": ["city", "degrees"],
        "additionalProperties": False,
    }
    form = {"type": "json_schema", "json_schema": {"name": "weather", "schema": schema, "strict": True}}
    answer = chat(messages=user("json"), response_format=form)
    assert json.loads(answer.choices[0].message.content) == {"city": "Rom", "degrees": 30}
    held("a schema")
    image = [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": PIXEL}}]
    assert chat(messages=user(image)).choices[0].message.content == "I see an image."
    held("an image")
    refused(openai.BadRequestError, "unsupported_value", lambda: chat(messages=user("hi"), n=2))
    refused(openai.NotFoundError, "model_not_found", lambda: chat(messages=user("hi"), model="nobody"))
    refused(openai.InternalServerError, "provider_unauthorized", lambda: chat(messages=user("fail 401")))
    wrong = openai.OpenAI(base_url=f"{url}/v1", api_key="sk-wrong", max_retries=0)
    refused(openai.AuthenticationError, "invalid_api_key", lambda: list(wrong.models.list()))
    page = {"Origin": "https://evil.example"}
    refused(openai.PermissionDeniedError, "origin_not_allowed", lambda: client.models.retrieve("upstream", extra_headers=page))
    quota = "fail 429 insufficient_quota"
    refused(openai.RateLimitError, "insufficient_quota", lambda: chat(messages=user(quota)))
    refused(openai.BadRequestError, "missing_required_parameter", lambda: chat(messages=user(None)))
    refused(openai.APIError, "answer_broke_off", lambda: list(chat(messages=user("break"), stream=True)))
    held("each class of error")
    stream = chat(messages=user("slow"), stream=True)
    next(chunk for chunk in stream if chunk.choices and chunk.choices[0].delta.content)
    stream.close()
    while urllib.request.urlopen(f"{upstream}/open").read() != b"0":
        time.sleep(0.02)
    held("cancel ends the model's work")


def tools_of_servers(client, chat):
    """The user's servers answer beside the client's own tools, and never leave the folder that they were given."""
    notes = [{"type": "mcp", "server_label": "notes"}]
    answer = chat(messages=user("call notes__search_notes {\"query\": \"heat pump\"}"), tools=notes)
    assert answer.choices[0].finish_reason == "stop" and "Heat pump" in answer.choices[0].message.content, answer
    pieces = chat(messages=user("call notes__search_notes {\"query\": \"heat pump\"}"), tools=notes, stream=True)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in pieces if chunk.choices)
    assert "Heat pump" in text, text
    held("a tool of the user's server")
    for path in ("../secret.md", "/etc/passwd", "a/../../secret.md", "C:\\\\secret.md", "\\u0000", "%2e%2e/secret.md"):
        question = f"call notes__read_note {{\"path\": \"{path}\"}}"
        answer = chat(messages=user(question), tools=notes)
        said = answer.choices[0].message.content
        assert "treasure" not in said and "root:" not in said, (path, said)
    assert chat(messages=user("hi")).choices[0].message.content == "Grüß Gott, Welt."
    held("no path leads out of the notes")
    forced = {"type": "function", "function": {"name": "notes__search_notes"}}
    asked = json.loads(chat(messages=user("what was asked"), tools=notes, tool_choice=forced).choices[0].message.content)
    assert asked["tool_choice"] == forced, asked
    held("a call that is asked for")


def main(lectern):
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder) / "notes"
        notes.mkdir()
        (notes / "Heat pump.md").write_text("# Heat pump\nThe filter is blocked.\n")
        (Path(folder) / "secret.md").write_text("treasure\n")
        with served(lectern, "--vault", str(notes)) as (url, key, upstream):
            client = openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0)

            def chat(**body):
                return client.chat.completions.create(**{"model": "upstream", **body})

            checks(client, chat, url, upstream)
            tools_of_servers(client, chat)


main(sys.argv[1])
