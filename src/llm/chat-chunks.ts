// The stream of a chat-completions server, made sound before its package reads it. The package gives a whole chunk up for one odd member,
// and with the chunk the end of the answer; servers of open models have many odd members (rule MO-44). Used by adapters.ts.
import type { GuardedFetch } from "./fetch.ts";
import { ModelError } from "./model.ts";
import { streamOfWhole } from "./whole-answer.ts";

/** Answers as the package can read them. Throws `ModelError` for a web page in the place of an answer. */
export const soundChunks =
  (fetch: GuardedFetch): GuardedFetch =>
  async (input, init) => {
    const response = await fetch(input, init);
    const type = response.headers.get("content-type") ?? "";
    if (response.ok && /^\s*text\/html\b/i.test(type)) {
      await response.body?.cancel();
      throw new ModelError("config", "It answered with text/html.", { reason: "web_page" });
    }
    if (response.ok && /^\s*application\/json\b/i.test(type) && asksForStream(init)) return streamOfWhole(response);
    if (!response.ok || !response.body || !/\btext\/event-stream\b/i.test(type)) return response;
    const body = response.body
      .pipeThrough(new TextDecoderStream())
      .pipeThrough(lines())
      .pipeThrough(new TextEncoderStream());
    return new Response(body, { status: response.status, headers: response.headers });
  };

const asksForStream = (init: RequestInit | undefined): boolean =>
  typeof init?.body === "string" && /"stream"\s*:\s*true/.test(init.body);

/** More than that in one line is passed on as it is. */
const LONGEST_LINE = 16 * 1024 * 1024;

const lines = (): TransformStream<string, string> => {
  const reader = new ChunkReader();
  let rest = "";
  return new TransformStream({
    transform(text, out) {
      const whole = rest + text;
      const end = whole.lastIndexOf("\n") + 1;
      rest = whole.slice(end);
      if (end > 0) out.enqueue(whole.slice(0, end).replace(/^data:.*$/gm, (line) => reader.read(line)));
      if (rest.length <= LONGEST_LINE) return;
      out.enqueue(rest);
      rest = "";
    },
    flush(out) {
      if (rest !== "") out.enqueue(reader.read(rest));
    },
  });
};

/** Only what one of these finds is looked into. Inside of texts quotes are escaped, so none of them matches there. */
const ODD =
  /"finish_reason"\s*:\s*[^n"\s]|"arguments"\s*:\s*\{|"(prompt|completion|total)_tokens"\s*:\s*"|"\w+_tokens_details"\s*:\s*[^n{\s]|"error"\s*:\s*"/;
const FINISH = /"finish_reason"\s*:\s*"/;
const SAYS = /"(content|reasoning_content|reasoning)"\s*:\s*"[^"]/;
const CALLS = /"tool_calls"\s*:\s*\[\s*\{/;

/** One stream, line by line. */
class ChunkReader {
  #hasFinish = false;
  #speaks = false;
  #calls = false;

  /** The line as the package is to read it; an end that the server has not given a reason for gets the plain one. */
  read(line: string): string {
    const data = line.slice("data:".length).trim();
    if (data === "[DONE]") {
      const isOpen = !this.#hasFinish && (this.#speaks || this.#calls);
      return isOpen ? `data: ${ending(this.#calls ? "tool_calls" : "stop")}\n\n${line}` : line;
    }
    const made = ODD.test(data) ? sound(data) : data;
    this.#hasFinish ||= FINISH.test(made);
    this.#speaks ||= SAYS.test(made);
    this.#calls ||= CALLS.test(made);
    return made === data ? line : `data: ${made}`;
  }
}

const ending = (finish_reason: string): string =>
  JSON.stringify({
    id: "end",
    object: "chat.completion.chunk",
    created: 0,
    model: "",
    choices: [{ index: 0, delta: {}, finish_reason }],
  });

type Members = Record<string, unknown>;
const isMembers = (value: unknown): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The chunk with its odd members made plain, or left out; as it is where it is no JSON object. */
const sound = (data: string): string => {
  let chunk: unknown;
  try {
    chunk = JSON.parse(data);
  } catch {
    return data;
  }
  if (!isMembers(chunk)) return data;
  if (typeof chunk.error === "string") chunk.error = { message: chunk.error };
  if ("usage" in chunk) chunk.usage = isMembers(chunk.usage) ? soundUsage(chunk.usage) : null;
  for (const choice of Array.isArray(chunk.choices) ? chunk.choices : []) {
    if (!isMembers(choice)) continue;
    const { finish_reason, delta } = choice;
    if (finish_reason !== null && finish_reason !== undefined && typeof finish_reason !== "string")
      choice.finish_reason = null;
    const calls = isMembers(delta) && Array.isArray(delta.tool_calls) ? delta.tool_calls : [];
    for (const call of calls) {
      const asked = isMembers(call) ? call.function : undefined;
      if (isMembers(asked) && isMembers(asked.arguments)) asked.arguments = JSON.stringify(asked.arguments);
    }
  }
  return JSON.stringify(chunk);
};

/** Counts that are written as texts are taken; details that are no object go. */
const soundUsage = (usage: Members): Members =>
  Object.fromEntries(
    Object.entries(usage).flatMap(([name, value]): [string, unknown][] => {
      if (name.endsWith("_details")) return isMembers(value) ? [[name, value]] : [];
      return [[name, typeof value === "string" && /^\d{1,12}$/.test(value) ? Number(value) : value]];
    }),
  );
