// A model of an OpenAI-compatible endpoint that does as the question says, for the suites of the local API. Prints its
// address. `GET /open` tells how many answers are being made.
import { createServer } from "node:http";

let open = 0;
const server = createServer(async (request, response) => {
  if (request.url === "/open") return response.end(String(open));
  let text = "";
  for await (const piece of request) text += piece;
  const asked = JSON.parse(text || "{}");
  const last = asked.messages?.at(-1) ?? {};
  const parts = Array.isArray(last.content) ? last.content : [{ type: "text", text: last.content ?? "" }];
  const words = parts.map((part) => part.text ?? "").join("");
  const failure = /^fail (\d+) ?(\w*)$/.exec(words);
  if (failure) {
    response.writeHead(Number(failure[1]), { "content-type": "application/json" });
    return response.end(JSON.stringify({ error: { message: "as you wish", type: "x", code: failure[2] || null, param: null } }));
  }
  open += 1;
  response.on("close", () => (open -= 1));
  response.writeHead(200, { "content-type": "text/event-stream" });
  const send = (choices, usage) =>
    response.write(`data: ${JSON.stringify({ id: "u", object: "chat.completion.chunk", created: 1, model: asked.model, choices, usage })}\n\n`);
  const delta = (value, finish = null) => send([{ index: 0, delta: value, finish_reason: finish }]);
  const end = (finish) => {
    delta({}, finish);
    send([], { prompt_tokens: 11, completion_tokens: 5, total_tokens: 16 });
    response.end("data: [DONE]\n\n");
  };
  delta({ role: "assistant", content: "" });
  const calls = /^calls (\d+)$/.exec(words);
  const call = /^call (\S+) (.*)$/.exec(words);
  if (words === "break") {
    delta({ content: "Half " });
    return void setTimeout(() => response.destroy(), 50);
  }
  if (words === "slow") return void delta({ content: "Once upon a time" });
  if (last.role === "tool") {
    const results = asked.messages.filter((message) => message.role === "tool").map((message) => message.content);
    delta({ content: results.join(" and ") });
    return end("stop");
  }
  if (calls) {
    for (let index = 0; index < Number(calls[1]); index += 1) {
      delta({ tool_calls: [{ index, id: `up_${index}`, type: "function", function: { name: "weather", arguments: "" } }] });
      for (const piece of [`{"city":`, `"${index}"}`]) delta({ tool_calls: [{ index, function: { arguments: piece } }] });
    }
    return end("tool_calls");
  }
  if (call) {
    delta({ tool_calls: [{ index: 0, id: "up_0", type: "function", function: { name: call[1], arguments: call[2] } }] });
    return end("tool_calls");
  }
  if (words === "what was asked") {
    const { messages, model, stream, stream_options, ...others } = asked;
    delta({ content: JSON.stringify(others) });
    return end("stop");
  }
  if (asked.response_format) delta({ content: `{"city":"Rom","degrees":30}` });
  else if (parts.some((part) => part.type === "image_url")) delta({ content: "I see an image." });
  else for (const piece of ["Grüß ", "Gott, ", "Welt."]) delta({ content: piece });
  end("stop");
});
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}`));
