// The stream of a model server, made sound before the provider's package reads it: the packages give a whole chunk up for one odd member,
// and with the chunk the end of the answer (rule MO-44). What is odd in a chunk is known by each protocol. Used by chat-chunks.ts and
// anthropic-events.ts.
import type { GuardedFetch } from "./fetch.ts";
import { ModelError } from "./model.ts";

/** Reads the lines of one answer that carry data. */
export type LineReader = {
  read(line: string): string;
  /** What is missing when the stream is over; empty when nothing is. */
  end?(): string;
};

type Protocol = {
  readonly reader: () => LineReader;
  /** Turns a whole answer into the stream that was asked for. */
  readonly streamOfWhole: (response: Response) => Promise<Response>;
};

/** Returns a fetch whose answers the package can read. It throws `ModelError` for a web page in the place of an answer. */
export const soundFetch =
  (fetch: GuardedFetch, { reader, streamOfWhole }: Protocol): GuardedFetch =>
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
      .pipeThrough(lines(reader()))
      .pipeThrough(new TextEncoderStream());
    return new Response(body, { status: response.status, headers: response.headers });
  };

const asksForStream = (init: RequestInit | undefined): boolean =>
  typeof init?.body === "string" && /"stream"\s*:\s*true/.test(init.body);

/** More than that in one line is passed on as it is. */
const MAX_LINE_BYTES = 16 * 1024 * 1024;

/** Not `.`: it ends at U+2028 and U+2029, which may stand in a text as they are. */
const DATA = /^data:[^\r\n]*/gm;

const lines = (reader: LineReader): TransformStream<string, string> => {
  let rest = "";
  return new TransformStream({
    transform(text, out) {
      const whole = rest + text;
      const end = whole.lastIndexOf("\n") + 1;
      rest = whole.slice(end);
      if (end > 0) out.enqueue(readLines(whole.slice(0, end), reader));
      if (rest.length <= MAX_LINE_BYTES) return;
      out.enqueue(rest);
      rest = "";
    },
    flush(out) {
      if (rest !== "") out.enqueue(readLines(rest, reader));
      const missing = reader.end?.() ?? "";
      if (missing !== "") out.enqueue(`\n\n${missing}\n\n`);
    },
  });
};

const readLines = (text: string, reader: LineReader): string =>
  text.replace(DATA, (line, at: number) => {
    // `^` in a pattern with `m` matches behind U+2028, too.
    const before = text[at - 1];
    return at === 0 || before === "\n" || before === "\r" ? reader.read(line) : line;
  });

export type Members = Record<string, unknown>;
export const isMembers = (value: unknown): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The JSON object in a text; undefined for anything else. */
export const membersIn = (text: string): Members | undefined => {
  try {
    const value: unknown = JSON.parse(text);
    return isMembers(value) ? value : undefined;
  } catch {
    return undefined;
  }
};

/** More than that is no answer of a model, in characters. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

/** Returns the answer as the events it stands for; as it came where `eventsOf` finds nothing that a model says. */
export const asEventStream = async (
  response: Response,
  eventsOf: (whole: Members) => readonly (Members | string)[] | undefined,
): Promise<Response> => {
  const text = await response.text();
  const whole = text.length > MAX_ANSWER_BYTES ? undefined : membersIn(text);
  const events = whole && eventsOf(whole);
  if (events === undefined) return new Response(text, { status: response.status, headers: response.headers });
  const data = events.map((event) => (typeof event === "string" ? event : JSON.stringify(event)));
  const headers = new Headers(response.headers);
  headers.set("content-type", "text/event-stream");
  headers.delete("content-length");
  const body = data.map((one) => `data: ${one}\n\n`).join("");
  return new Response(body, { status: response.status, headers });
};
