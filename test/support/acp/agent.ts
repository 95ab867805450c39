// A coding agent for tests that speaks the Agent Client Protocol on its standard input and output. Each line of the prompt is a command.
// It stores sessions in its home, so that a restarted agent can load them.
// - say TEXT: says TEXT; think TEXT: thinks TEXT; ramble N: says a million characters, N times
// - edit PATH TEXT: asks for permission, then writes a file; run COMMAND: asks for permission, then runs COMMAND
// - free COMMAND: runs COMMAND without asking; write PATH: writes a file through its client
// - wait TEXT: waits until it is canceled, then says a last message; die: exits
// - fail TEXT: rejects the prompt; plan: sends a plan
// - stubborn: continues when it is canceled
// - linger TEXT: waits until it is canceled, says TEXT, and exits once its home contains a file "end"
// - leave MODE: reports that its mode is now MODE
// - through PATH TEXT: like edit, but writes the file through its client
// - put PATH: like write, but does not make the path absolute
// - same A; B: asks for both commands under one ID, one after the other; together A; B: at the same time; apart A; B: under two IDs,
//   without an update about the first in between
// - foreign TEXT: says TEXT and asks to run it, in another session than the chat's
// - huge MIB: says MIB mebibytes in one message
// - tools: lists the tools of its MCP servers
// - use NAME JSON: calls a tool of its MCP server; asked NAME JSON: asks for permission first
// - term COMMAND: has its client run COMMAND and shows the terminal; termask COMMAND: asks for permission first
// - termin FOLDER COMMAND: like term, in a folder below its own
// - termwait COMMAND: like term, and waits until it is canceled
// - home PATH: says the content of a file in its home
// - call [TOKENS]: calls a model of the gateway with this token limit, and says its answer. If a budget rejects the call, waits until it
//   is canceled
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import {
  type AgentContext,
  agent,
  type CreateTerminalResponse,
  type McpServer,
  ndJsonStream,
  RequestError,
  type TerminalOutputResponse,
  type ToolCallUpdate,
  type WaitForTerminalExitResponse,
} from "@agentclientprotocol/sdk";
import { until } from "../until.ts";

const HOME = process.env.HOME ?? ".";
const FORGETS = process.env.TEST_AGENT_FORGETS === "1";
const DIES_LOADING = process.env.TEST_AGENT_DIES_LOADING === "1";
const MODEL = process.env.TEST_AGENT_MODEL ?? "large";
const SUPPORTS_MCP = process.env.TEST_AGENT_NO_MCP !== "1";
const CAPABILITIES = process.env.TEST_AGENT_READS_TEXT === "1" ? {} : { image: true, embeddedContext: true };
const log = (line: string): void => appendFileSync(join(HOME, "agent.log"), `${line}\n`);
const toRecordPath = (session: string): string => join(HOME, "sessions", `${session}.jsonl`);

let callCount = 0;
const cancelCallbacks = new Map<string, () => void>();

const record = (session: string, update: object): void => {
  mkdirSync(join(HOME, "sessions"), { recursive: true });
  appendFileSync(toRecordPath(session), `${JSON.stringify(update)}\n`);
};

class Turn {
  readonly #client: AgentContext;
  readonly #session: string;
  readonly #cwd: string;
  readonly #cancelled: Promise<void>;

  constructor(client: AgentContext, session: string, cwd: string, cancelled: Promise<void>) {
    this.#cancelled = cancelled;
    this.#client = client;
    this.#session = session;
    this.#cwd = cwd;
  }

  async sendUpdate(update: Record<string, unknown>): Promise<void> {
    record(this.#session, update);
    await this.#client.notify("session/update", { sessionId: this.#session, update } as never);
  }

  sendText(type: string, text: string): Promise<void> {
    return this.sendUpdate({ sessionUpdate: type, content: { type: "text", text } });
  }

  async call(call: Omit<ToolCallUpdate, "toolCallId">, asks: boolean, work: () => Promise<string>): Promise<void> {
    callCount += 1;
    const toolCallId = `call-${process.pid}-${callCount}`;
    await this.sendUpdate({ sessionUpdate: "tool_call", toolCallId, status: "pending", ...call });
    if (asks) {
      const { outcome } = await this.#client.request("session/request_permission", {
        sessionId: this.#session,
        toolCall: Object.assign({ toolCallId }, call),
        options: [
          { optionId: "yes", name: "Allow", kind: "allow_once" },
          { optionId: "no", name: "Reject", kind: "reject_once" },
        ],
      });
      log(`answered ${outcome.outcome === "selected" ? outcome.optionId : outcome.outcome}`);
      if (outcome.outcome !== "selected" || outcome.optionId !== "yes") {
        await this.sendUpdate({
          sessionUpdate: "tool_call_update",
          toolCallId,
          status: "failed",
          content: toTextContent("rejected"),
        });
        return;
      }
    }
    await this.sendUpdate({ sessionUpdate: "tool_call_update", toolCallId, status: "in_progress" });
    const output = await work();
    await this.sendUpdate({
      sessionUpdate: "tool_call_update",
      toolCallId,
      status: "completed",
      content: toTextContent(output),
    });
  }

  run(command: string, asks: boolean): Promise<void> {
    return this.call({ title: `\`${command}\``, kind: "execute", rawInput: { command } }, asks, async () => {
      const child = Bun.spawn(["sh", "-c", command], { cwd: this.#cwd, stdout: "pipe", stderr: "inherit" });
      cancelCallbacks.set(this.#session, () => child.kill());
      return await new Response(child.stdout).text();
    });
  }

  async terminal(command: string, { waits = false, folder = "" } = {}): Promise<void> {
    const sessionId = this.#session;
    callCount += 1;
    const toolCallId = `terminal-call-${process.pid}-${callCount}`;
    const env = command.startsWith("printenv") ? [{ name: "GIVEN", value: "a b" }] : [];
    const terminalRequest = { sessionId, command, env, cwd: join(this.#cwd, folder), outputByteLimit: 16 };
    const created = await this.#client
      .request<CreateTerminalResponse>("terminal/create", terminalRequest)
      .catch(() => undefined);
    if (!created) return this.sendText("agent_message_chunk", "no terminal ");
    const { terminalId } = created;
    const content = [{ type: "terminal", terminalId }];
    const call = { title: command, kind: "execute", rawInput: { command }, status: "in_progress", content };
    await this.sendUpdate({ sessionUpdate: "tool_call", toolCallId, ...call });
    if (waits) return this.wait();
    const ids = { sessionId, terminalId };
    const { exitCode } = await this.#client.request<WaitForTerminalExitResponse>("terminal/wait_for_exit", ids);
    const { output, truncated } = await this.#client.request<TerminalOutputResponse>("terminal/output", ids);
    log(`terminal ${exitCode} ${truncated} ${JSON.stringify(output)}`);
    await this.sendUpdate({ sessionUpdate: "tool_call_update", toolCallId, status: "completed" });
    await this.#client.request("terminal/release", ids);
  }

  edit(path: string, text: string, isThroughClient = false): Promise<void> {
    const file = join(this.#cwd, path);
    const content = [
      {
        type: "diff" as const,
        path: file,
        oldText: existsSync(file) ? readFileSync(file, "utf8") : null,
        newText: text,
      },
    ];
    return this.call({ title: `Edit ${path}`, kind: "edit", content, locations: [{ path: file }] }, true, async () => {
      const write = { sessionId: this.#session, path: file, content: text };
      if (isThroughClient) await this.#client.request("fs/write_text_file", write);
      else writeFileSync(file, text);
      return "edited";
    });
  }

  /** Asks for permission for a command under an ID, without announcing a call. */
  async ask(toolCallId: string, command: string, sessionId = this.#session): Promise<void> {
    const { outcome } = await this.#client.request("session/request_permission", {
      sessionId,
      toolCall: { toolCallId, title: command, kind: "execute", rawInput: { command } },
      options: [
        { optionId: "yes", name: "Allow", kind: "allow_once" },
        { optionId: "no", name: "Reject", kind: "reject_once" },
      ],
    });
    log(`${command}: ${outcome.outcome === "selected" ? outcome.optionId : outcome.outcome}`);
  }

  async foreign(text: string): Promise<void> {
    const sessionId = "another";
    const content = { type: "text" as const, text };
    await this.#client.notify("session/update", {
      sessionId,
      update: { sessionUpdate: "agent_message_chunk", content },
    });
    await this.ask("foreign", text, sessionId);
    const write = { sessionId, path: join(this.#cwd, text), content: "foreign" };
    await this.#client.request("fs/write_text_file", write).catch(() => log("not written"));
  }

  async write(path: string): Promise<void> {
    await this.#client.request("fs/write_text_file", { sessionId: this.#session, path, content: "by the client" }).then(
      () => this.sendText("agent_message_chunk", "written"),
      () => this.sendText("agent_message_chunk", "not written"),
    );
  }

  /** Returns false if the call was canceled. */
  async callModel(max_tokens?: number): Promise<boolean> {
    const { OPENAI_BASE_URL, OPENAI_API_KEY } = process.env;
    const response = await fetch(`${OPENAI_BASE_URL}/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${OPENAI_API_KEY}` },
      body: JSON.stringify({ model: "test-model", max_tokens, messages: [{ role: "user", content: "hello" }] }),
    });
    const text = await response.text();
    log(`called ${response.status}`);
    if (response.status === 429) await this.wait();
    else await this.sendText("agent_message_chunk", response.ok ? "answered " : text);
    return response.status !== 429;
  }

  wait(): Promise<void> {
    return this.#cancelled;
  }
}

/** Sends a request to its MCP server, as the server's clients do. */
const requestMcp = async (method: string, params: object): Promise<unknown> => {
  const [server] = servers;
  if (!server || !("url" in server)) return "no server";
  const headers = Object.fromEntries(server.headers.map(({ name, value }) => [name, value]));
  const response = await fetch(server.url, {
    method: "POST",
    headers: Object.assign(headers, {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
    }),
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  });
  const data = (await response.text()).split("\n").find((line) => line.startsWith("data: "));
  return (JSON.parse(data?.slice(6) ?? "{}") as { result?: unknown }).result;
};

const MODES = {
  currentModeId: "default",
  availableModes: [
    { id: "default", name: "Default" },
    { id: "plan", name: "Plan" },
    { id: "careful", name: "Careful", description: "Looks twice." },
  ],
};

const toConfigOptions = (currentValue: string) => [
  {
    type: "select" as const,
    id: "model",
    name: "Model",
    category: "model" as const,
    currentValue,
    options: [
      { value: "small", name: "Small" },
      { value: MODEL, name: `The ${MODEL} one` },
    ],
  },
];

const toTextContent = (text: string) => [{ type: "content", content: { type: "text", text } }];
const folders = new Map<string, string>();
let servers: readonly McpServer[] = [];

agent({ name: "test-agent" })
  .onRequest("initialize", async () => {
    log("initialize");
    const mcpCapabilities = { http: SUPPORTS_MCP };
    return {
      protocolVersion: 1,
      agentCapabilities: { loadSession: true, promptCapabilities: CAPABILITIES, mcpCapabilities },
    };
  })
  .onRequest("session/new", async ({ params }) => {
    const sessionId = `s-${process.pid}-${Date.now()}`;
    folders.set(sessionId, params.cwd);
    servers = params.mcpServers;
    record(sessionId, {});
    writeFileSync(
      join(HOME, "mcp-servers.json"),
      JSON.stringify(servers.map((server) => Object.assign({}, server, { headers: [] }))),
    );
    log("new");
    return {
      sessionId,
      modes: MODES,
      configOptions: toConfigOptions("small"),
    };
  })
  .onRequest("session/set_config_option", async ({ params }) => {
    log(`${params.configId} ${params.value}`);
    return { configOptions: toConfigOptions(String(params.value)) };
  })
  .onRequest("session/set_mode", async ({ params }) => {
    log(`mode ${params.modeId}`);
    return {};
  })
  .onRequest("session/load", async ({ params, client }) => {
    const { sessionId } = params;
    if (DIES_LOADING) process.exit(9);
    if (FORGETS || !existsSync(toRecordPath(sessionId))) throw RequestError.resourceNotFound(sessionId);
    folders.set(sessionId, params.cwd);
    servers = params.mcpServers;
    log("load");
    for (const line of readFileSync(toRecordPath(sessionId), "utf8").trim().split("\n")) {
      const update = JSON.parse(line);
      if (update.sessionUpdate) await client.notify("session/update", { sessionId, update } as never);
    }
    return { modes: MODES, configOptions: toConfigOptions("small") };
  })
  .onRequest("session/prompt", async ({ params, client }) => {
    const { sessionId, prompt } = params;
    const text = prompt.map((block) => (block.type === "text" ? block.text : "")).join("\n");
    log(`prompt ${JSON.stringify(text)}`);
    for (const block of prompt) {
      if (block.type === "image") log(`image ${block.mimeType} ${Buffer.from(block.data, "base64").length}`);
      if (block.type === "resource" && "blob" in block.resource) {
        const { uri, mimeType, blob } = block.resource;
        log(`resource ${uri} ${mimeType} ${Buffer.from(blob, "base64").toString()}`);
      }
    }
    const stopped = Promise.withResolvers<void>();
    const turn = new Turn(client, sessionId, folders.get(sessionId) ?? ".", stopped.promise);
    record(sessionId, { sessionUpdate: "user_message_chunk", content: { type: "text", text } });
    cancelCallbacks.set(sessionId, stopped.resolve);
    for (const line of (text.split("</conversation>").at(-1) ?? "").split("\n")) {
      const [verb = "", argument = "", ...remaining] = line.trim().split(" ");
      const tail = [argument, ...remaining].join(" ");
      if (verb === "say") await turn.sendText("agent_message_chunk", tail);
      if (verb === "ramble")
        for (let n = 0; n < Number(tail); n++) await turn.sendText("agent_message_chunk", "word ".repeat(200_000));
      if (verb === "think") await turn.sendText("agent_thought_chunk", tail);
      if (verb === "edit" || verb === "through") {
        await turn.edit(argument, `${remaining.join(" ")}\n`, verb === "through");
      }
      if (verb === "run" || verb === "free") await turn.run(tail, verb === "run");
      if (verb === "write") await turn.write(join(folders.get(sessionId) ?? ".", argument));
      if (verb === "put") await turn.write(argument);
      if (verb === "same") for (const command of tail.split("; ")) await turn.ask("fixed", command);
      if (verb === "apart") for (const command of tail.split("; ")) await turn.ask(`of ${command}`, command);
      if (verb === "together") await Promise.all(tail.split("; ").map((command) => turn.ask("fixed", command)));
      if (verb === "foreign") await turn.foreign(argument);
      if (verb === "pending") {
        for (let n = 1; n <= Number(argument); n++) {
          const call = { toolCallId: `pending-${n}`, status: "pending", title: "pending", rawInput: { n } };
          await turn.sendUpdate({ sessionUpdate: "tool_call", ...call });
        }
      }
      if (verb.startsWith("bulky")) {
        const rawInput = { values: Array.from({ length: Number(argument) }, () => 0) };
        await turn.call({ title: "bulky", kind: "other", rawInput }, verb === "bulkyask", async () => "done");
      }
      if (verb.startsWith("diffs")) {
        const diff = { type: "diff" as const, path: "a.txt", oldText: "a", newText: "b" };
        const content = Array.from({ length: Number(argument) }, () => diff);
        await turn.call({ title: "diffs", kind: "edit", content }, verb === "diffsask", async () => "done");
      }
      if (verb === "huge") await turn.sendText("agent_message_chunk", "x".repeat(Number(argument) * 1024 ** 2));
      if (verb === "stubborn") {
        await turn.sendText("agent_message_chunk", "busy");
        await new Promise(() => {});
      }
      if (verb === "tools") {
        const { tools = [] } = (await requestMcp("tools/list", {})) as { tools?: { name: string }[] };
        await turn.sendText("agent_message_chunk", tools.map(({ name }) => name).join(" ") || "none");
      }
      if (verb === "use" || verb === "asked") {
        const rawInput = JSON.parse(remaining.join(" ")) as object;
        const title = `mcp__slipway__${argument}`;
        await turn.call({ title, kind: "other", rawInput }, verb === "asked", async () => {
          const { content } = (await requestMcp("tools/call", { name: argument, arguments: rawInput })) as {
            content: { text: string }[];
          };
          return content.map(({ text }) => text).join();
        });
      }
      if (verb === "termask") {
        const call = { title: tail, kind: "execute" as const, rawInput: { command: tail } };
        await turn.call(call, true, async () => "approved");
      }
      if (verb === "termin") await turn.terminal(tail.slice(argument.length + 1), { folder: argument });
      else if (verb.startsWith("term")) await turn.terminal(tail, { waits: verb === "termwait" });
      if (verb === "home") await turn.sendText("agent_message_chunk", readFileSync(join(HOME, argument), "utf8"));
      if (verb === "leave") await turn.sendUpdate({ sessionUpdate: "current_mode_update", currentModeId: argument });
      if (verb === "die") process.exit(7);
      if (verb === "fail") throw new RequestError(-32_000, "No model", { message: tail });
      if (verb === "call" && !(await turn.callModel(argument === "" ? undefined : Number(argument))))
        return { stopReason: "cancelled" };
      if (verb === "plan") {
        await turn.sendUpdate({
          sessionUpdate: "plan",
          entries: [{ content: "Look", priority: "medium", status: "completed" }],
        });
      }
      if (verb === "linger") {
        await turn.sendText("agent_message_chunk", "waiting");
        await turn.wait();
        await turn.sendText("agent_message_chunk", `, ${tail}`);
        await until(() => existsSync(join(HOME, "end")));
        return { stopReason: "cancelled" };
      }
      if (verb === "wait") {
        await turn.sendText("agent_message_chunk", "waiting");
        await turn.wait();
        log("cancelled");
        if (argument !== "") await turn.sendText("agent_message_chunk", `, ${tail}`);
        return { stopReason: "cancelled" };
      }
    }
    await turn.sendUpdate({ sessionUpdate: "usage_update", used: 1_234, size: 200_000 });
    return { stopReason: "end_turn" };
  })
  .onNotification("session/cancel", ({ params }) => cancelCallbacks.get(params.sessionId)?.())
  .connect(ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin) as ReadableStream<Uint8Array>));
