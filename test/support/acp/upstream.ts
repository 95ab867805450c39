// A model provider for genuine coding agents: Anthropic Messages, OpenAI Responses and chat completions, and Gemini. A model of it writes the
// file that the prompt names, `proof-NAME.txt` with its path, with whatever tool the agent offers for that, and says a sentence when it sees the
// result.
export const SENTENCE = "The file is written, as you asked.";

type Json = Record<string, unknown>;
type Use = { readonly name: string; readonly args: Json };
type Event = { readonly event?: string; readonly data: unknown };

export class AgentUpstream implements AsyncDisposable {
  readonly #server: Bun.Server<undefined>;
  /** Paths of the calls, and the keys they came with. */
  readonly calls: { readonly path: string; readonly key: string }[] = [];
  /** Bodies of the calls, as they came. */
  readonly bodies: string[] = [];

  constructor() {
    this.#server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      idleTimeout: 0,
      fetch: (request) => this.#answer(request),
    });
  }

  get url(): string {
    return this.#server.url.href.replace(/\/$/, "");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.stop(true);
  }

  async #answer(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    const text = await request.text();
    this.bodies.push(text);
    const body = (text.startsWith("{") ? JSON.parse(text) : {}) as Json;
    const { headers } = request;
    const key = headers.get("x-api-key") ?? headers.get("x-goog-api-key") ?? headers.get("authorization") ?? "";
    this.calls.push({ path: pathname, key });
    if (pathname.endsWith("/count_tokens")) return Response.json({ input_tokens: 10 });
    if (pathname.includes("countTokens")) return Response.json({ totalTokens: 10 });
    if (pathname.endsWith("/messages"))
      return anthropic(body, useFor(text, namesIn(body, "name"), has(body, '"tool_result"')));
    if (pathname.endsWith("/responses")) {
      return responses(body, useFor(text, namesIn(body, "name"), has(body, '"function_call_output"')));
    }
    if (pathname.endsWith("/chat/completions")) {
      const names = list(body.tools).map((tool) => String((tool.function as Json | undefined)?.name));
      return completions(
        body,
        useFor(
          text,
          names,
          list(body.messages).some(({ role }) => role === "tool"),
        ),
      );
    }
    if (pathname.includes("enerateContent")) {
      const names = list(body.tools).flatMap((tool) => list(tool.functionDeclarations).map(({ name }) => String(name)));
      return gemini(body, useFor(text, names, has(body, '"functionResponse"')), pathname.includes("stream"));
    }
    return Response.json({ error: { message: "not found" } }, { status: 404 });
  }
}

/** What the model writes into the file. */
export const WRITTEN = "made by the agent";

/** The call that writes the file; undefined: it was made, or the agent asks for something else, such as a title. */
const useFor = (text: string, names: readonly string[], isDone: boolean): Use | undefined => {
  const [path] = /\/[\w/.-]*proof-[a-z-]+\.txt/.exec(text) ?? [];
  if (isDone || path === undefined) return undefined;
  const command = `printf '%s' '${WRITTEN}' > ${path}`;
  const uses: readonly Use[] = [
    { name: "Write", args: { file_path: path, content: WRITTEN } },
    { name: "write_file", args: { file_path: path, content: WRITTEN } },
    { name: "write", args: { filePath: path, content: WRITTEN } },
    { name: "exec_command", args: { cmd: command } },
    { name: "shell_command", args: { command } },
    { name: "shell", args: { command: ["bash", "-lc", command] } },
  ];
  return uses.find(({ name }) => names.includes(name));
};

const list = (value: unknown): readonly Json[] => (Array.isArray(value) ? (value as Json[]) : []);
const namesIn = (body: Json, member: string): string[] => list(body.tools).map((tool) => String(tool[member]));
const has = ({ messages, input, contents }: Json, mark: string): boolean =>
  JSON.stringify(messages ?? input ?? contents ?? []).includes(mark);

const events = (all: readonly Event[]): Response =>
  new Response(
    all
      .map(
        ({ event, data }) =>
          `${event ? `event: ${event}\n` : ""}data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`,
      )
      .join(""),
    { headers: { "content-type": "text/event-stream" } },
  );

const anthropic = ({ model, stream }: Json, use: Use | undefined): Response => {
  const usage = { input_tokens: 10, output_tokens: 1 };
  const message = {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage,
  };
  if (!stream)
    return Response.json(Object.assign(message, { content: [{ type: "text", text: "ok" }], stop_reason: "end_turn" }));
  const block = use ? { type: "tool_use", id: "toolu_1", name: use.name, input: {} } : { type: "text", text: "" };
  const delta = use
    ? { type: "input_json_delta", partial_json: JSON.stringify(use.args) }
    : { type: "text_delta", text: SENTENCE };
  const end = { stop_reason: use ? "tool_use" : "end_turn", stop_sequence: null };
  return events(
    [
      { type: "message_start", message },
      { type: "content_block_start", index: 0, content_block: block },
      { type: "content_block_delta", index: 0, delta },
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: end, usage: { output_tokens: 7 } },
      { type: "message_stop" },
    ].map((data) => ({ event: data.type, data })),
  );
};

const responses = ({ model }: Json, use: Use | undefined): Response => {
  const item = use
    ? { type: "function_call", id: "fc_1", call_id: "call_1", name: use.name, arguments: JSON.stringify(use.args) }
    : {
        type: "message",
        id: "m_1",
        role: "assistant",
        status: "completed",
        content: [{ type: "output_text", text: SENTENCE, annotations: [] }],
      };
  const response = { id: "resp_1", object: "response", status: "in_progress", model, output: [] as unknown[] };
  const usage = {
    input_tokens: 10,
    output_tokens: 5,
    total_tokens: 15,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens_details: { reasoning_tokens: 0 },
  };
  const said = {
    type: "response.output_text.delta",
    item_id: "m_1",
    output_index: 0,
    content_index: 0,
    delta: SENTENCE,
  };
  const completed = Object.assign({}, response, { status: "completed", output: [item], usage });
  const begun = Object.assign({}, item, use ? { arguments: "" } : { content: [] });
  return events(
    [
      { type: "response.created", response },
      { type: "response.output_item.added", output_index: 0, item: begun },
      ...(use ? [] : [said]),
      { type: "response.output_item.done", output_index: 0, item },
      { type: "response.completed", response: completed },
    ].map((data) => ({ event: data.type, data })),
  );
};

const completions = ({ model }: Json, use: Use | undefined): Response => {
  const chunk = (choices: unknown[], more: Json = {}): Event => ({
    data: Object.assign({ id: "c1", object: "chat.completion.chunk", created: 1, model, choices }, more),
  });
  const call = use && {
    index: 0,
    id: "call_1",
    type: "function",
    function: { name: use.name, arguments: JSON.stringify(use.args) },
  };
  const delta = call ? { role: "assistant", tool_calls: [call] } : { role: "assistant", content: SENTENCE };
  return events([
    chunk([{ index: 0, delta, finish_reason: null }]),
    chunk([{ index: 0, delta: {}, finish_reason: use ? "tool_calls" : "stop" }]),
    chunk([], { usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 } }),
    { data: "[DONE]" },
  ]);
};

const gemini = ({ generationConfig }: Json, use: Use | undefined, isStream: boolean): Response => {
  const { responseMimeType, responseJsonSchema } = (generationConfig ?? {}) as Json;
  const wantsJson = responseMimeType === "application/json" || responseJsonSchema !== undefined;
  const choice = {
    model_choice: "flash",
    complexity_reasoning: "x",
    complexity_score: 1,
    reasoning: "x",
    next_speaker: "user",
  };
  const text = wantsJson ? JSON.stringify(choice) : SENTENCE;
  const part = use ? { functionCall: { name: use.name, args: use.args } } : { text };
  const answer = {
    candidates: [{ content: { role: "model", parts: [part] }, finishReason: "STOP", index: 0 }],
    usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 },
  };
  return isStream ? events([{ data: answer }]) : Response.json(answer);
};
