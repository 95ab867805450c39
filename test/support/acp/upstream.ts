// A model provider for genuine coding agents: Anthropic Messages, OpenAI Responses and chat completions, and Gemini. The last of these
// lines in the conversation selects what the model does. Without such a line, it says a fixed sentence.
// - `Write /PATH/proof-NAME.txt`: writes the file with a tool of the agent, and says the sentence when it sees the result
// - `Hold on, NAME.`: begins an answer, and then pauses until the agent disconnects
export const FINAL_TEXT = "The file is written, as you asked.";
/** The text that the model says before it pauses. */
export const PARTIAL_TEXT = "I am looking into it.";

type Json = Record<string, unknown>;
type ToolUse = { readonly name: string; readonly args: Json };
type Event = { readonly event?: string; readonly data: unknown };
/** The model's action: a tool call or a text, after which it ends or pauses. */
type Action = { readonly use: ToolUse | undefined; readonly text: string; readonly id: string };
/** The events of a stream, and the number of events up to the model's first text. */
type Answer = { readonly events: readonly Event[]; readonly pauseAfter: number };

export class AgentUpstream implements AsyncDisposable {
  readonly #server: Bun.Server<undefined>;
  /** Path and key of each call. */
  readonly calls: { readonly path: string; readonly key: string }[] = [];
  /** Raw bodies of the calls. */
  readonly bodies: string[] = [];
  /** Names of the calls that are currently paused. */
  readonly held: string[] = [];

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
    const input = JSON.stringify(body.messages ?? body.input ?? body.contents ?? []);
    const prompt = [...input.matchAll(PROMPTS)].at(-1);
    const afterPrompt = input.slice(prompt?.index ?? 0);
    const names = listToolNames(body);
    const isDone = RESULTS.some((mark) => afterPrompt.includes(mark));
    // Requests without tools are not turns, but titles and similar.
    const holder = names.length > 0 ? prompt?.groups?.holder : undefined;
    const action: Action = {
      use: isDone ? undefined : chooseCall(prompt?.groups?.path, names),
      text: holder === undefined ? FINAL_TEXT : PARTIAL_TEXT,
      id: `call_${this.calls.length}`,
    };
    if (pathname.endsWith("/messages") && body.stream !== true) return Response.json(anthropicMessage(body));
    const answer = createStream(pathname, body, action);
    if (answer instanceof Response) return answer;
    if (answer) return holder === undefined ? toEventResponse(answer.events) : this.#hold(request, holder, answer);
    return Response.json({ error: { message: "not found" } }, { status: 404 });
  }

  /** Sends the answer up to the model's first text. */
  #hold({ signal }: Request, holder: string, { events, pauseAfter }: Answer): Response {
    this.held.push(holder);
    signal.addEventListener("abort", () => this.held.splice(this.held.indexOf(holder), 1));
    const started = new TextEncoder().encode(formatEvents(events.slice(0, pauseAfter)));
    return new Response(new ReadableStream({ start: (controller) => controller.enqueue(started) }), {
      headers: STREAM,
    });
  }
}

/** The content that the model writes to the file. */
export const FILE_CONTENT = "made by the agent";

const PROMPTS = /Write (?<path>\/[\w/.-]*proof-[a-z-]+\.txt)|Hold on, (?<holder>[a-z-]+)|Answer me/g;
/** The markers of tool results in the four dialects. */
const RESULTS = ['"tool_result"', '"function_call_output"', '"role":"tool"', '"functionResponse"'];

/** Returns the call that writes the file; undefined if the agent asks for something else or offers no suitable tool. */
const chooseCall = (path: string | undefined, names: readonly string[]): ToolUse | undefined => {
  if (path === undefined) return undefined;
  const command = `printf '%s' '${FILE_CONTENT}' > ${path}`;
  const uses: readonly ToolUse[] = [
    { name: "Write", args: { file_path: path, content: FILE_CONTENT } },
    { name: "write_file", args: { file_path: path, content: FILE_CONTENT } },
    { name: "write", args: { filePath: path, content: FILE_CONTENT } },
    { name: "exec_command", args: { cmd: command } },
    { name: "shell_command", args: { command } },
    { name: "shell", args: { command: ["bash", "-lc", command] } },
  ];
  return uses.find(({ name }) => names.includes(name));
};

const toList = (value: unknown): readonly Json[] => (Array.isArray(value) ? (value as Json[]) : []);

/** Returns the names of the offered tools, in any dialect. */
const listToolNames = ({ tools }: Json): string[] =>
  toList(tools).flatMap(({ name, function: built, functionDeclarations }) => [
    ...[name, (built as Json | undefined)?.name].filter((name) => typeof name === "string"),
    ...toList(functionDeclarations).map((declaration) => String(declaration.name)),
  ]);

const createStream = (pathname: string, body: Json, action: Action): Answer | Response | undefined => {
  if (pathname.endsWith("/messages")) return streamAnthropic(body, action);
  if (pathname.endsWith("/responses")) return streamResponses(body, action);
  if (pathname.endsWith("/chat/completions")) return streamCompletions(body, action);
  return pathname.includes("enerateContent") ? streamGemini(body, action, pathname.includes("stream")) : undefined;
};

const STREAM = { "content-type": "text/event-stream" };
const formatEvents = (events: readonly Event[]): string =>
  events
    .map(
      ({ event, data }) =>
        `${event ? `event: ${event}\n` : ""}data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`,
    )
    .join("");
const toEventResponse = (events: readonly Event[]): Response => new Response(formatEvents(events), { headers: STREAM });

const anthropicMessage = ({ model }: Json): Json => ({
  id: "msg_1",
  type: "message",
  role: "assistant",
  model,
  content: [{ type: "text", text: "ok" }],
  stop_reason: "end_turn",
  stop_sequence: null,
  usage: { input_tokens: 10, output_tokens: 1 },
});

const streamAnthropic = (body: Json, { use, text, id }: Action): Answer => {
  const message = Object.assign(anthropicMessage(body), { content: [], stop_reason: null });
  const block = use ? { type: "tool_use", id: `toolu_${id}`, name: use.name, input: {} } : { type: "text", text: "" };
  const delta = use
    ? { type: "input_json_delta", partial_json: JSON.stringify(use.args) }
    : { type: "text_delta", text };
  const end = { stop_reason: use ? "tool_use" : "end_turn", stop_sequence: null };
  const events = [
    { type: "message_start", message },
    { type: "content_block_start", index: 0, content_block: block },
    { type: "content_block_delta", index: 0, delta },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: end, usage: { output_tokens: 7 } },
    { type: "message_stop" },
  ];
  return { events: events.map((data) => ({ event: data.type, data })), pauseAfter: 3 };
};

const streamResponses = ({ model }: Json, { use, text, id }: Action): Answer => {
  const item = use
    ? { type: "function_call", id: `fc_${id}`, call_id: id, name: use.name, arguments: JSON.stringify(use.args) }
    : {
        type: "message",
        id: `m_${id}`,
        role: "assistant",
        status: "completed",
        content: [{ type: "output_text", text, annotations: [] }],
      };
  const response = { id: `resp_${id}`, object: "response", status: "in_progress", model, output: [] as unknown[] };
  const usage = {
    input_tokens: 10,
    output_tokens: 5,
    total_tokens: 15,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens_details: { reasoning_tokens: 0 },
  };
  const answer = {
    type: "response.output_text.delta",
    item_id: `m_${id}`,
    output_index: 0,
    content_index: 0,
    delta: text,
  };
  const completed = Object.assign({}, response, { status: "completed", output: [item], usage });
  const started = Object.assign({}, item, use ? { arguments: "" } : { content: [] });
  const events = [
    { type: "response.created", response },
    { type: "response.output_item.added", output_index: 0, item: started },
    ...(use ? [] : [answer]),
    { type: "response.output_item.done", output_index: 0, item },
    { type: "response.completed", response: completed },
  ];
  return { events: events.map((data) => ({ event: data.type, data })), pauseAfter: 3 };
};

const streamCompletions = ({ model }: Json, { use, text, id }: Action): Answer => {
  const chunk = (choices: unknown[], fields: Json = {}): Event => ({
    data: Object.assign({ id: "c1", object: "chat.completion.chunk", created: 1, model, choices }, fields),
  });
  const call = use && {
    index: 0,
    id,
    type: "function",
    function: { name: use.name, arguments: JSON.stringify(use.args) },
  };
  const delta = call ? { role: "assistant", tool_calls: [call] } : { role: "assistant", content: text };
  const events = [
    chunk([{ index: 0, delta, finish_reason: null }]),
    chunk([{ index: 0, delta: {}, finish_reason: use ? "tool_calls" : "stop" }]),
    chunk([], { usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 } }),
    { data: "[DONE]" },
  ];
  return { events, pauseAfter: 1 };
};

const streamGemini = ({ generationConfig }: Json, { use, text }: Action, isStream: boolean): Answer | Response => {
  const { responseMimeType, responseJsonSchema } = (generationConfig ?? {}) as Json;
  const wantsJson = responseMimeType === "application/json" || responseJsonSchema !== undefined;
  const choice = {
    model_choice: "flash",
    complexity_reasoning: "x",
    complexity_score: 1,
    reasoning: "x",
    next_speaker: "user",
  };
  const answer = { text: wantsJson ? JSON.stringify(choice) : text };
  const part = use ? { functionCall: { name: use.name, args: use.args } } : answer;
  const usageMetadata = { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 };
  const message = (fields: Json): Json => ({
    candidates: [Object.assign({ content: { role: "model", parts: [part] }, index: 0 }, fields)],
    usageMetadata,
  });
  const complete = message({ finishReason: "STOP" });
  if (!isStream) return Response.json(complete);
  return text === PARTIAL_TEXT
    ? { events: [{ data: message({}) }], pauseAfter: 1 }
    : { events: [{ data: complete }], pauseAfter: 1 };
};
