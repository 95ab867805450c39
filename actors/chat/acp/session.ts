// A chat's running coding agent: its program in the workspace, the connection to it, and its session. It outlives turns; each turn takes
// its events one by one. The workspace's daemon carries out its requests for files and commands, if the chat's rules allow them.
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

export type OpenSession = {
  readonly chat_id: string;
  readonly profile: CodingAgent;
  /** The session to continue, if the agent can load sessions. */
  readonly stored_session_id: string | undefined;
  readonly model_tokens: ModelTokens;
  readonly tools: AgentTools;
  readonly context: HomeFiles & { readonly introduction: string; readonly key: string };
  /** Aborts when the turn that waits for the session ends. */
  readonly signal: AbortSignal;
};

type OpenedSession = {
  readonly connection: AcpConnection;
  readonly session_id: string;
  readonly replayed: string | undefined;
  readonly hasTools: boolean;
  readonly terminals: Terminals;
  readonly folder: string;
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
  /** Whether the agent can call these tools: it was given their MCP endpoint and supports MCP over HTTP. */
  readonly hasTools: boolean;
  readonly terminals: Terminals;
  /** Identifies the instructions, skills, MCP servers and workspace with which the agent was started. */
  readonly context_key: string;
  /** The user messages that the agent replayed when it loaded the session; undefined for a new session. */
  readonly replayed: string | undefined;
  readonly events: AgentEvents;
  /** The agent's working directory. */
  readonly folder: string;
  readonly questions: Questions;
  /** IDs of calls that have a result in the history. Later updates about them are ignored. */
  readonly finishedCalls = new Set<string>();
  /** The last stored step. The next step continues its open calls. */
  lastStep: AgentStep | undefined;
  /** Calls in the history that have no result yet. */
  readonly #openCalls = new Map<string, MessagePart>();
  #options: readonly SessionOption[];
  #prompt: Promise<void> | undefined;
  #isPrompting = false;
  #isGone = false;
  /** Aborts the calls that Slipway runs for the agent. */
  #serverCalls = new AbortController();

  private constructor(
    deps: { readonly clock: Clock; readonly agent: ToolAgent },
    stdio: ProgramStdio,
    events: AgentEvents,
    { profile, tools, context }: OpenSession,
    { connection, session_id, replayed, options, hasTools, terminals, folder }: OpenedSession,
  ) {
    this.folder = folder;
    this.questions = new Questions(folder);
    this.tools = tools;
    this.hasTools = hasTools;
    this.terminals = terminals;
    this.context_key = context.key;
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
    const { chat_id, profile, stored_session_id, model_tokens, tools, context, signal } = request;
    const { command, arguments: args, variables, install_script, auth_method } = profile;
    const mcp_token = `${uuid()}${uuid()}`;
    const { home_files, home_links } = context;
    const program = Object.assign(
      { id: uuid(), chat_id, command, arguments: args, variables, install_script, model_tokens, mcp_token },
      { home_files, home_links },
    );
    const answerMcp = (message: string): Promise<string> =>
      tools.answer(message, async (call, run) =>
        session ? session.#runIfApproved(call, run) : toErrorAnswer(TURN_OVER),
      );
    const stdio = await ProgramStdio.start((call) => agent.call(call), clock, program, answerMcp, signal);
    const onAbort = (): void => stdio.end();
    signal.addEventListener("abort", onAbort);
    const events = new AgentEvents();
    let replayedChunks: string[] | undefined = [];
    let session: AgentSession | undefined;
    const isThisSession = (id: string): boolean => id === (session?.session_id ?? stored_session_id);
    const requireSession = (id: string): AgentSession => {
      if (!session || !isThisSession(id)) throw new Error("The session is not open.");
      return session;
    };
    // A terminal gets its next event only after the turn has handled the last one, which shows all output so far.
    const reportedTerminals = new Set<string>();
    const terminals = new Terminals(
      deps,
      () => session?.folder,
      (terminal_id) => {
        if (!session?.isPrompting || reportedTerminals.has(terminal_id)) return;
        reportedTerminals.add(terminal_id);
        events.push({ type: "printed", terminal_id, onHandled: () => reportedTerminals.delete(terminal_id) });
      },
    );
    const requests: AgentRequests = {
      update: (id, update) => {
        if (!isThisSession(id)) return;
        if (session) session.#onOptionsUpdate(update);
        if (replayedChunks === undefined) return events.push({ type: "update", update });
        if (update.sessionUpdate === "user_message_chunk" && update.content.type === "text")
          replayedChunks.push(update.content.text);
      },
      permission: ({ sessionId, toolCall, options }) =>
        new Promise((resolve) => {
          const answer = (isGranted: boolean | undefined): void => resolve({ outcome: toOutcome(options, isGranted) });
          // A person could not review a call that is too large to show.
          if (!session || !isThisSession(sessionId) || !isShowableUpdate(toolCall)) return answer(undefined);
          session.#pushQuestion({ call: toolCall, isWrite: false, answer });
        }),
      createTerminal: async (request) => requireSession(request.sessionId).#createTerminal(request),
      terminalOutput: async ({ terminalId }) => terminals.output(terminalId),
      terminalExit: ({ terminalId }) => terminals.exit(terminalId),
      killTerminal: ({ terminalId }) => terminals.kill(terminalId),
      writeFile: async ({ sessionId, path, content }) => requireSession(sessionId).#writeFile(path, content),
    };
    try {
      signal.throwIfAborted();
      const { directory, mcp_url } = await stdio.started;
      const mcp = mcp_url === undefined ? undefined : { url: mcp_url, token: mcp_token };
      const connection = await AcpConnection.open(stdio, clock, { version: VERSION, auth_method }, requests);
      const opened = await openSession(connection, { cwd: directory, mcp }, stored_session_id, () =>
        (replayedChunks ?? []).join(""),
      );
      replayedChunks = undefined;
      session = new AgentSession(deps, stdio, events, request, {
        connection,
        terminals,
        folder: directory,
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

  /** Whether the agent is working on a prompt. Stays true until the chat's turn takes the event of its end. */
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

  /** Sets the mode for this turn and the options that people chose. A rejected option is only logged: the chat's rules apply in every mode. */
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

  /** Starts a turn of the agent. Its end arrives as an event. Resolves when the workspace has the prompt, or the agent has ended. */
  prompt(blocks: ContentBlock[]): Promise<void> {
    const written = this.#stdio.waitUntilWritten();
    this.events.drain();
    this.#isPrompting = true;
    this.questions.beginTurn();
    this.lastStep = undefined;
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

  /** Cancels the agent's turn, and kills an agent that does not end its turn. Resolves with the remaining events. */
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

  /** Tells the workspace where finished calls may have changed files, so that the chat's diff includes them. */
  reportTouchedFiles(parts: readonly MessagePart[]): void {
    for (const part of parts) if (part.type === "tool-call") this.#openCalls.set(part.tool_call_id ?? "", part);
    const finished = parts.flatMap(({ type, tool_call_id = "" }) => {
      const call = type === "tool-result" ? this.#openCalls.get(tool_call_id) : undefined;
      return call && this.#openCalls.delete(tool_call_id) ? [call] : [];
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

  /** Maps each path that leads outside of the agent's folder, or to a hidden file in it, to its real path (rule CA-19). */
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

  /** Runs a command that the agent asked its client to run. Resolves with the terminal's ID once the command is running. */
  #createTerminal(request: CreateTerminalRequest): Promise<string> {
    return this.terminals.create(
      request,
      async (call) => (await this.#requestApproval(call)) === true,
      (tool_call_id, answer) => this.events.push({ type: "ran", tool_call_id, answer }),
    );
  }

  /** Asks for approval of a call that Slipway runs, by the chat's rules or a person. Resolves to undefined once the turn is over. */
  #requestApproval(serverCall: ServerCall): Promise<boolean | undefined> {
    const { tool_call_id, tool_name, args } = serverCall;
    const call = { toolCallId: tool_call_id, title: tool_name, kind: "other" as const, rawInput: args };
    return new Promise((answer) => this.#pushQuestion({ call, isWrite: false, serverCall, answer }));
  }

  #endCalls(): void {
    this.terminals.endAll();
    this.#serverCalls.abort(INTERRUPTED_REASON);
    this.#serverCalls = new AbortController();
  }

  /** Runs the call if the chat's rules or a person approve it. */
  async #runIfApproved(call: ServerCall, run: (signal: AbortSignal) => Promise<ToolAnswer>): Promise<ToolAnswer> {
    const { signal } = this.#serverCalls;
    const isGranted = await this.#requestApproval(call);
    if (!isGranted) return toErrorAnswer(isGranted === undefined ? TURN_OVER : CALL_REFUSED);
    const answer = await run(signal).catch(() => toErrorAnswer(TURN_OVER));
    this.events.push({ type: "ran", tool_call_id: call.tool_call_id, answer });
    return answer;
  }

  #pushQuestion(question: AgentQuestion): void {
    // Between turns, no one would answer the question.
    if (this.#isPrompting) this.events.push(Object.assign({ type: "asked" as const }, question));
    else question.answer(undefined);
  }

  async #resolvePath(path: string): Promise<string> {
    return (await this.resolveOutside([path])).get(path) ?? path;
  }

  /** Writes a file for the agent. Requires approval, because not every agent asks for permission before it sends this request. */
  async #writeFile(requestedPath: string, content: string): Promise<void> {
    const path = await this.#resolvePath(requestedPath);
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
      // While the approval was pending, a link may have replaced the file.
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

/** Maximum paths and commands in one report to the workspace. */
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

const toErrorAnswer = (error: string): ToolAnswer => ({ result: { error }, is_error: true });

type SessionTarget = { readonly cwd: string; readonly mcp: McpEndpoint | undefined };

/** Loads the stored session, or opens a new one. `readReplayed` returns the messages that the agent has replayed by then. */
const openSession = async (
  connection: AcpConnection,
  { cwd, mcp }: SessionTarget,
  stored_session_id: string | undefined,
  readReplayed: () => string,
) => {
  if (stored_session_id !== undefined && connection.canLoad) {
    try {
      const loaded = await connection.loadSession(stored_session_id, cwd, mcp);
      return { ...loaded, replayed: readReplayed() };
    } catch {
      // The agent may have lost its session. The chat has the complete history, so a new session replaces it.
    }
  }
  return { ...(await connection.newSession(cwd, mcp)), replayed: undefined };
};

/** Answers a request for permission with one of the options that the agent offers. */
const toOutcome = (options: readonly PermissionOption[], isGranted: boolean | undefined) => {
  const wanted = isGranted ? ["allow_once", "allow_always"] : ["reject_once", "reject_always"];
  const option = wanted.map((kind) => options.find((one) => one.kind === kind)).find((one) => one !== undefined);
  if (isGranted === undefined || !option) return { outcome: "cancelled" as const };
  return { outcome: "selected" as const, optionId: option.optionId };
};

const MAX_REASON_LENGTH = 1_000;

/** Formats an error of the connection. The agent's own message is in the error's `data`. */
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
