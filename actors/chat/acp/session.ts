// A running coding agent of a chat: its program in the workspace, the connection, and its session. It outlives turns; each turn takes its
// events one by one. File requests of the agent go to the workspace's daemon, subject to the chat's rules.

import type { Clock } from "#base/clock.ts";
import { uuid } from "#base/ids.ts";
import { log } from "#base/log.ts";
import { finishesWithin } from "#base/retry.ts";
import { VERSION } from "#base/version.ts";
import type { HomeFiles, ModelTokens } from "#schema/agents/agent-program.ts";
import type { TouchedFiles } from "#schema/agents/git-message.ts";
import type { CodingAgent } from "#schema/ai/coding-agents.ts";
import type { AgentOption, ChosenOptions } from "#schema/chats/agent-option.ts";
import type { MessagePart } from "#schema/chats/chat-part.ts";
import { isShowableUpdate } from "#src/acp/calls.ts";
import {
  AcpConnection,
  type AgentRequests,
  type ContentBlock,
  type CreateTerminalRequest,
  MAX_MESSAGE_BYTES,
  type McpEndpoint,
  type PermissionOption,
  type PromptCapabilities,
  type SessionUpdate,
} from "#src/acp/connection.ts";
import { applyConfig, isModeOption, type SessionOption, selectChoice, toAgentOptions } from "#src/acp/options.ts";
import { ProgramStdio } from "#src/acp/stdio.ts";
import { findFilesOutside } from "#src/tools/files/real-path.ts";
import { getCommand, getPaths, isEdit } from "#src/tools/permission-mode.ts";
import type { ToolAnswer } from "#src/tools/run.ts";
import { INTERRUPTED_REASON, type ToolAgent } from "#src/tools/tool.ts";
import { type AgentEvent, AgentEvents, type AgentQuestion, type ServerCall } from "./events.ts";
import { chooseOption } from "./modes.ts";
import { Questions } from "./questions.ts";
import type { AgentStep } from "./step.ts";
import { Terminals } from "./terminals.ts";
import type { AgentTools } from "./tools.ts";

/** How long a canceled agent may take to end its turn. */
const CANCEL_TIMEOUT_MS = 10_000;

/**
 * How to open a session. `load`: the session to continue, if the agent can load sessions. `signal`: aborts when the turn that waits for
 * the session ends.
 */
export type OpenSession = {
  readonly chat_id: string;
  readonly profile: CodingAgent;
  readonly load: string | undefined;
  readonly model_tokens: ModelTokens;
  readonly tools: AgentTools;
  readonly given: HomeFiles & { readonly introduction: string; readonly key: string };
  readonly signal: AbortSignal;
};

type OpenedSession = {
  readonly connection: AcpConnection;
  readonly session_id: string;
  readonly replayed: string | undefined;
  readonly hasTools: boolean;
  readonly terminals: Terminals;
  /** Where the agent runs. */
  readonly directory: string;
  readonly options: readonly SessionOption[];
};

export class AgentSession {
  readonly #clock: Clock;
  readonly #agent: ToolAgent;
  readonly #stdio: ProgramStdio;
  readonly #connection: AcpConnection;
  readonly session_id: string;
  readonly profile: CodingAgent;
  readonly tools: AgentTools;
  /** Whether the agent got the address of these tools. */
  readonly hasTools: boolean;
  readonly terminals: Terminals;
  /** Identifies what the agent started with: instructions, skills, MCP servers and workspace. */
  readonly given_key: string;
  /** People's messages as the agent replayed them when it loaded the session; undefined for a new session. */
  readonly replayed: string | undefined;
  readonly events: AgentEvents;
  /** Where the agent runs. */
  readonly folder: string;
  readonly questions: Questions;
  /** Calls whose results are stored. Later updates about them are ignored. */
  readonly done = new Set<string>();
  /** The last stored step. The next step continues its open calls. */
  step: AgentStep | undefined;
  /** Calls without a result, as the chat displays them. */
  readonly #shown = new Map<string, MessagePart>();
  #options: readonly SessionOption[];
  #prompt: Promise<void> | undefined;
  #isPrompting = false;
  #isGone = false;
  /** Aborts the calls that run for the agent. */
  #running = new AbortController();

  private constructor(
    deps: { readonly clock: Clock; readonly agent: ToolAgent },
    stdio: ProgramStdio,
    events: AgentEvents,
    { profile, tools, given }: OpenSession,
    { connection, session_id, replayed, options, hasTools, terminals, directory }: OpenedSession,
  ) {
    this.folder = directory;
    this.questions = new Questions(directory);
    this.tools = tools;
    this.hasTools = hasTools;
    this.terminals = terminals;
    this.given_key = given.key;
    this.#options = options;
    this.#clock = deps.clock;
    this.#agent = deps.agent;
    this.#stdio = stdio;
    this.#connection = connection;
    this.events = events;
    this.profile = profile;
    this.session_id = session_id;
    this.replayed = replayed;
    void stdio.ended.then(() => {
      this.#isGone = true;
    });
  }

  /** Starts the agent and opens its session. Rejects with a readable message when the agent cannot be installed, started or reached. */
  static async open(
    deps: { readonly clock: Clock; readonly agent: ToolAgent },
    request: OpenSession,
  ): Promise<AgentSession> {
    const { clock, agent } = deps;
    const { chat_id, profile, load, model_tokens, tools, given, signal } = request;
    const { command, arguments: args, variables, install_script, auth_method } = profile;
    const mcp_token = `${uuid()}${uuid()}`;
    const { home_files, home_links } = given;
    const program = Object.assign(
      { id: uuid(), chat_id, command, arguments: args, variables, install_script, model_tokens, mcp_token },
      { home_files, home_links },
    );
    const answerMcp = (message: string): Promise<string> =>
      tools.answer(message, async (call, run) =>
        session ? session.#runApproved(call, run) : { result: { error: TURN_OVER }, is_error: true },
      );
    const stdio = await ProgramStdio.start((call) => agent.call(call), clock, program, answerMcp, signal);
    const onAbort = (): void => stdio.end();
    signal.addEventListener("abort", onAbort);
    const events = new AgentEvents();
    let replayedChunks: string[] | undefined = [];
    let session: AgentSession | undefined;
    const isOurs = (id: string): boolean => id === (session?.session_id ?? load);
    const printed = new Set<string>();
    // One event covers everything printed until the turn takes it.
    const terminals = new Terminals(
      deps,
      () => session?.folder,
      (terminal_id) => {
        if (!session?.isPrompting || printed.has(terminal_id)) return;
        printed.add(terminal_id);
        events.push({ type: "printed", terminal_id, onHandled: () => printed.delete(terminal_id) });
      },
    );
    const requests: AgentRequests = {
      update: (id, update) => {
        if (!isOurs(id)) return;
        if (session) session.#onOptionsUpdate(update);
        if (replayedChunks === undefined) return events.push({ type: "update", update });
        if (update.sessionUpdate === "user_message_chunk" && update.content.type === "text")
          replayedChunks.push(update.content.text);
      },
      permission: ({ sessionId, toolCall, options }) =>
        new Promise((resolve) => {
          const answer = (isGranted: boolean | undefined): void => resolve({ outcome: toOutcome(options, isGranted) });
          // Too large for a person to review.
          if (!session || !isOurs(sessionId) || !isShowableUpdate(toolCall)) return answer(undefined);
          session.#pushQuestion({ call: toolCall, isWrite: false, answer });
        }),
      createTerminal: async (request) => {
        if (!session || !isOurs(request.sessionId)) throw new Error("The session is not open.");
        return session.#createTerminal(request);
      },
      terminalOutput: async ({ terminalId }) => terminals.output(terminalId),
      terminalExit: ({ terminalId }) => terminals.exit(terminalId),
      killTerminal: ({ terminalId }) => terminals.kill(terminalId),
      writeFile: async ({ sessionId, path, content }) => {
        if (!session || !isOurs(sessionId)) throw new Error("The session is not open.");
        await session.#writeFile(path, content);
      },
    };
    try {
      signal.throwIfAborted();
      const { directory, mcp_url } = await stdio.started;
      const mcp = mcp_url === undefined ? undefined : { url: mcp_url, token: mcp_token };
      const connection = await AcpConnection.open(stdio, clock, { version: VERSION, auth_method }, requests);
      const opened = await openSession(connection, { cwd: directory, mcp }, load, () =>
        (replayedChunks ?? []).join(""),
      );
      replayedChunks = undefined;
      session = new AgentSession(deps, stdio, events, request, {
        connection,
        terminals,
        directory,
        hasTools: mcp !== undefined && connection.canReachMcp,
        ...opened,
      });
      return session;
    } catch (error) {
      stdio.end();
      throw new Error(formatError(error));
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  get isGone(): boolean {
    return this.#isGone;
  }

  /** Whether the agent has a turn whose end has not been processed. */
  get isPrompting(): boolean {
    return this.#isPrompting;
  }

  /** Returns the next event, or undefined once the signal aborts. */
  async next(signal: AbortSignal): Promise<AgentEvent | undefined> {
    const event = await this.events.next(signal);
    if (event?.type === "ended" || event?.type === "failed") this.#isPrompting = false;
    return event;
  }

  /** The options that people can choose, with their current values. */
  get options(): readonly AgentOption[] {
    return toAgentOptions(this.#options);
  }

  /**
   * Sets the mode for this turn and the options that people chose. If the agent refuses, it keeps its values: the chat's rules apply in
   * every mode.
   */
  async applyOptions(isPlanning: boolean, chosen: ChosenOptions): Promise<void> {
    for (const { id } of this.#options) {
      // Setting an earlier option may have changed the others.
      const option = this.#options.find((one) => one.id === id);
      const wanted = option && chooseOption(option, { isPlanning, chosen, preferred: this.profile.mode });
      if (!option || wanted === undefined || wanted === option.current) continue;
      try {
        this.#options = await this.#connection.setOption(this.session_id, this.#options, option, wanted);
      } catch (error) {
        log("chats").warn("a coding agent rejected {wanted} as its {id}: {error}", { wanted, id, error });
      }
    }
  }

  /** Applies the options that the agent reports. */
  #onOptionsUpdate(update: SessionUpdate): void {
    if (update.sessionUpdate === "config_option_update") {
      this.#options = applyConfig(this.#options, update.configOptions);
    }
    if (update.sessionUpdate !== "current_mode_update") return;
    const mode = this.#options.find((one) => isModeOption(one));
    if (mode) this.#options = selectChoice(this.#options, mode.id, update.currentModeId);
  }

  get promptAbilities(): PromptCapabilities {
    return this.#connection.promptAbilities;
  }

  /** Begins a turn of the agent, whose end arrives as an event. Resolves when the workspace has the prompt, or the agent has ended. */
  prompt(blocks: ContentBlock[]): Promise<void> {
    const written = this.#stdio.waitUntilWritten();
    this.events.drain();
    this.#isPrompting = true;
    this.questions.beginTurn();
    this.step = undefined;
    const prompt = this.#connection.prompt(this.session_id, blocks).then(
      ({ stopReason }) => this.events.push({ type: "ended", stop: stopReason }),
      async (error: unknown) => {
        // The connection closes shortly before the program's exit is reported.
        await finishesWithin(this.#clock, 1_000, this.#connection.closed);
        const reason = this.#isGone ? await this.#stdio.ended : formatError(error);
        const { excess } = this.#connection;
        this.events.push({ type: "failed", reason, isGone: this.#isGone, limit_exceeded: excess });
      },
    );
    this.#prompt = prompt.finally(() => {
      this.#prompt = undefined;
    });
    return written;
  }

  /** Cancels the agent's turn. Resolves with the events up to its end. Kills an agent that does not end its turn. */
  async cancel(): Promise<readonly AgentEvent[]> {
    const prompt = this.#prompt;
    this.#isPrompting = false;
    this.questions.cancel();
    this.#endCalls();
    if (!prompt) return this.events.drain();
    await this.#connection.cancel(this.session_id).catch(() => {});
    if (!(await finishesWithin(this.#clock, CANCEL_TIMEOUT_MS, prompt))) this.end();
    return this.events.drain();
  }

  /** Reports to the workspace where finished calls may have changed files, so that the chat's diff includes them. */
  reportTouched(parts: readonly MessagePart[]): void {
    for (const part of parts) if (part.type === "tool-call") this.#shown.set(part.tool_call_id ?? "", part);
    const finished = parts.flatMap(({ type, tool_call_id = "" }) => {
      const shown = type === "tool-result" ? this.#shown.get(tool_call_id) : undefined;
      return shown && this.#shown.delete(tool_call_id) ? [shown] : [];
    });
    const json = toTouchedFiles(finished);
    if (json.paths.length === 0 && json.commands.length === 0) return;
    this.#agent.call({ method: "POST", path: "/git/touched", json }).catch((error: unknown) => {
      log("chats").debug("failed to report the files that a coding agent changed: {error}", { error });
    });
  }

  /** Kills the agent's program and all its child processes. */
  end(): void {
    this.#isGone = true;
    this.#endCalls();
    this.#stdio.end();
    this.#connection.close();
  }

  /** Returns the real paths of files that are outside the agent's folder or hidden in it, keyed by the given paths (rule CA-19). */
  resolveOutside(paths: readonly string[], signal?: AbortSignal): Promise<ReadonlyMap<string, string>> {
    return findFilesOutside(this.#agent, paths, signal);
  }

  /** Returns the file's content, or undefined when it cannot be read. */
  async readText(path: string, signal: AbortSignal): Promise<string | undefined> {
    const bytes = await this.#agent
      .bytes(`/read-file?path=${encodeURIComponent(path)}`, MAX_MESSAGE_BYTES, signal)
      .catch(() => undefined);
    return bytes && new TextDecoder().decode(bytes);
  }

  /** Runs a command that the agent asked its client to run. Resolves once it is running. */
  #createTerminal(request: CreateTerminalRequest): Promise<string> {
    return this.terminals.create(
      request,
      async (own) => (await this.#requestApproval(own)) === true,
      (tool_call_id, answer) => this.events.push({ type: "ran", tool_call_id, answer }),
    );
  }

  /**
   * Checks a call that Slipway runs against the chat's rules, asking a person where needed. Resolves to undefined once the turn is over.
   */
  #requestApproval(own: ServerCall): Promise<boolean | undefined> {
    const { tool_call_id, tool_name, args } = own;
    const call = { toolCallId: tool_call_id, title: tool_name, kind: "other" as const, rawInput: args };
    return new Promise((answer) => this.#pushQuestion({ call, isWrite: false, own, answer }));
  }

  #endCalls(): void {
    this.terminals.endAll();
    this.#running.abort(INTERRUPTED_REASON);
    this.#running = new AbortController();
  }

  /** Runs the call after the chat's rules, and a person where required, have approved it. */
  async #runApproved(own: ServerCall, run: (signal: AbortSignal) => Promise<ToolAnswer>): Promise<ToolAnswer> {
    const { tool_call_id } = own;
    const { signal } = this.#running;
    const isGranted = await this.#requestApproval(own);
    if (!isGranted) return { result: { error: isGranted === undefined ? TURN_OVER : CALL_REFUSED }, is_error: true };
    const answer = await run(signal).catch((): ToolAnswer => ({ result: { error: TURN_OVER }, is_error: true }));
    this.events.push({ type: "ran", tool_call_id, answer });
    return answer;
  }

  #pushQuestion(question: AgentQuestion): void {
    // Requests outside of a turn would never be read.
    if (this.#isPrompting) this.events.push(Object.assign({ type: "asked" as const }, question));
    else question.answer(undefined);
  }

  async #resolvePath(path: string): Promise<string> {
    return (await this.resolveOutside([path])).get(path) ?? path;
  }

  /** Writes a file for the agent. Requires approval like a tool call, because not every agent asks before it writes through its client. */
  async #writeFile(given: string, content: string): Promise<void> {
    const path = await this.#resolvePath(given);
    const toolCallId = `write-${uuid()}`;
    const isGranted = await new Promise<boolean | undefined>((answer) => {
      const diff = { type: "diff" as const, path, newText: content };
      const call = { toolCallId, title: `Write ${path}`, kind: "edit" as const, content: [diff] };
      this.#pushQuestion({ call, isWrite: true, answer });
    });
    if (!isGranted) throw new Error("The chat's rules or its owner did not allow this file to be written.");
    const url = `/write-file?path=${encodeURIComponent(path)}`;
    const reportWritten = (error?: string): void =>
      this.events.push({ type: "written", tool_call_id: toolCallId, error });
    try {
      // The approval may take minutes, and a link may have replaced the file by then.
      if ((await this.#resolvePath(path)) !== path)
        throw new Error(`"${path}" now leads to a different file than the one that was approved.`);
      await this.#agent.call({ method: "POST", path: url, body: new TextEncoder().encode(content), patient: true });
      reportWritten();
    } catch (error) {
      reportWritten((error as Error).message);
      throw error;
    }
  }
}

const MAX_PATHS = 100;
const MAX_COMMANDS = 20;

const toTouchedFiles = (calls: readonly MessagePart[]): TouchedFiles => ({
  paths: calls
    .flatMap(({ tool_name = "", args }) => (isEdit(tool_name) ? getPaths(args).map(String) : []))
    .slice(0, MAX_PATHS),
  commands: calls
    .flatMap(({ tool_name, args }) => {
      const { workdir } = (args ?? {}) as { readonly workdir?: unknown };
      const directory = typeof workdir === "string" && workdir !== "" ? { directory: workdir } : {};
      return tool_name === "execute" ? [{ command: getCommand(args), ...directory }] : [];
    })
    .slice(0, MAX_COMMANDS),
});

const TURN_OVER = "The agent's turn is over, so the call did not run.";
const CALL_REFUSED = "The chat's rules or its owner did not allow this call.";

type SessionTarget = { readonly cwd: string; readonly mcp: McpEndpoint | undefined };

const openSession = async (
  connection: AcpConnection,
  { cwd, mcp }: SessionTarget,
  load: string | undefined,
  readReplayed: () => string,
) => {
  if (load !== undefined && connection.canLoad) {
    try {
      const loaded = await connection.loadSession(load, cwd, mcp);
      return { ...loaded, replayed: readReplayed() };
    } catch {
      // The agent may have lost its session. The chat has the complete history, so a new session replaces it.
    }
  }
  return { ...(await connection.newSession(cwd, mcp)), replayed: undefined };
};

const toOutcome = (options: readonly PermissionOption[], isGranted: boolean | undefined) => {
  const wanted = isGranted ? ["allow_once", "allow_always"] : ["reject_once", "reject_always"];
  const option = wanted.map((kind) => options.find((one) => one.kind === kind)).find((one) => one !== undefined);
  if (isGranted === undefined || !option) return { outcome: "cancelled" as const };
  return { outcome: "selected" as const, optionId: option.optionId };
};

const MAX_REASON_LENGTH = 1_000;

/** Returns the agent's own error message, which the protocol carries as data. */
const formatError = (error: unknown): string => {
  const { message = String(error), data } = error as { message?: string; data?: unknown };
  const detail = typeof data === "string" ? data : findDetail(data);
  const text = detail === "" || message.includes(detail) ? message : `${message}: ${detail}`;
  return text.slice(0, MAX_REASON_LENGTH);
};

const findDetail = (data: unknown): string => {
  const { message, details, errorMessage } = (typeof data === "object" && data !== null ? data : {}) as Record<
    string,
    unknown
  >;
  const found = [message, details, errorMessage].find((one) => typeof one === "string");
  return typeof found === "string" ? found : "";
};
