// Servers that do not know `stream: true` answer with one JSON object: here it becomes the stream that was asked for (rule MO-44). An error
// in its place is told like one in the middle of a stream. Used by chat-chunks.ts.

/** More than that is no answer of a model, in characters. */
const LONGEST = 16 * 1024 * 1024;

type Members = Record<string, unknown>;
const isMembers = (value: unknown): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The same as an event stream; as it came where it is nothing that a model says. */
export const streamOfWhole = async (response: Response): Promise<Response> => {
  const text = await response.text();
  const events = text.length > LONGEST ? undefined : eventsOf(text);
  if (events === undefined) return new Response(text, { status: response.status, headers: response.headers });
  const body = [...events.map((event) => JSON.stringify(event)), "[DONE]"].map((data) => `data: ${data}\n\n`).join("");
  const headers = new Headers(response.headers);
  headers.set("content-type", "text/event-stream");
  headers.delete("content-length");
  return new Response(body, { status: response.status, headers });
};

const eventsOf = (text: string): readonly Members[] | undefined => {
  const whole = parsed(text);
  if (whole === undefined) return undefined;
  if (whole.error !== undefined && whole.error !== null) return [{ error: whole.error }];
  const [choice] = Array.isArray(whole.choices) ? whole.choices : [];
  if (!isMembers(choice) || !isMembers(choice.message)) return undefined;
  const { id, created, model, usage } = whole;
  const chunk = { id, created, model, object: "chat.completion.chunk" };
  const { tool_calls, ...said } = choice.message;
  const calls = Array.isArray(tool_calls) ? tool_calls.map((call, index) => ({ index, ...call })) : undefined;
  const delta = calls === undefined ? said : { ...said, tool_calls: calls };
  return [
    { ...chunk, choices: [{ index: 0, delta, finish_reason: null }] },
    { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: choice.finish_reason ?? "stop" }], usage },
  ];
};

const parsed = (text: string): Members | undefined => {
  try {
    const value: unknown = JSON.parse(text);
    return isMembers(value) ? value : undefined;
  } catch {
    return undefined;
  }
};
