// A connection to a coding agent over the Agent Client Protocol: sessions, prompts, and the agent's requests to its client.
import type {
  ClientConnection,
  ContentBlock,
  CreateTerminalRequest,
  InitializeResponse,
  LoadSessionResponse,
  McpServer,
  PromptResponse,
  RequestPermissionRequest,
  RequestPermissionResponse,
  SessionUpdate,
  SetSessionConfigOptionRequest,
  SetSessionConfigOptionResponse,
  TerminalExitStatus,
  TerminalOutputResponse,
  WriteTextFileRequest,
} from "@agentclientprotocol/sdk";
import type { Clock } from "#base/clock.ts";
import { pause } from "#base/retry.ts";
import { applyConfig, readOptions, type SessionOption, selectChoice } from "./options.ts";
import type { ProgramStdio } from "./stdio.ts";

export type {
  ContentBlock,
  CreateTerminalRequest,
  PermissionOption,
  SessionUpdate,
  StopReason,
  TerminalExitStatus as TerminalExit,
  TerminalOutputResponse as TerminalOutput,
  ToolCallContent,
  ToolCallUpdate,
  ToolKind,
} from "@agentclientprotocol/sdk";

type TerminalId = { readonly sessionId: string; readonly terminalId: string };

/** The agent's requests to its client. A rejection becomes the error of the response. */
export type AgentRequests = {
  /** Called in the order in which the agent sent the updates. */
  update(session_id: string, update: SessionUpdate): void;
  permission(request: RequestPermissionRequest): Promise<RequestPermissionResponse>;
  writeFile(request: WriteTextFileRequest): Promise<void>;
  /** Runs a command and returns the ID of its terminal. */
  createTerminal(request: CreateTerminalRequest): Promise<string>;
  terminalOutput(terminal: TerminalId): Promise<TerminalOutputResponse>;
  /** Resolves when the command has ended. */
  terminalExit(terminal: TerminalId): Promise<TerminalExitStatus>;
  /** Kills the command. Its output can still be read. */
  killTerminal(terminal: TerminalId): Promise<void>;
};

/** The URL and the token of the agent's MCP server. */
export type McpEndpoint = { readonly url: string; readonly token: string };

export type SessionInfo = { readonly session_id: string; readonly options: readonly SessionOption[] };

/** The content that a prompt may contain in addition to text. */
export type PromptCapabilities = { readonly images: boolean; readonly documents: boolean };

/** Name of Slipway's MCP server. Agents prefix the names of its tools with it. */
const MCP_SERVER = "slipway";

/** Timeout of an answer, long enough for a cold start on a busy machine. */
const ANSWER_TIMEOUT_MS = 180_000;

/** Maximum size of a message from the agent. A larger one closes the connection. */
export const MAX_MESSAGE_BYTES = 32 * 1024 * 1024;

const TOO_LONG_MESSAGE = `It sent a message that is longer than ${MAX_MESSAGE_BYTES / 1024 ** 2} MiB, which is the limit.`;

export class AcpConnection {
  readonly #connection: ClientConnection;
  readonly #stdio: ProgramStdio;
  readonly #clock: Clock;
  readonly #info: InitializeResponse;
  #excess: string | undefined;

  private constructor(connection: ClientConnection, stdio: ProgramStdio, clock: Clock, info: InitializeResponse) {
    this.#connection = connection;
    this.#stdio = stdio;
    this.#clock = clock;
    this.#info = info;
  }

  /**
   * Initializes the connection and authenticates if the agent requires it. Rejects with a message if the agent does not answer or speaks
   * another version.
   */
  static async open(
    stdio: ProgramStdio,
    clock: Clock,
    { version, auth_method }: { readonly version: string; readonly auth_method: string },
    requests: AgentRequests,
  ): Promise<AcpConnection> {
    // Loaded with the first agent, because it includes a parser for the whole protocol.
    const { client, ndJsonStream, PROTOCOL_VERSION } = await import("@agentclientprotocol/sdk");
    const app = client({ name: "slipway" })
      .onNotification("session/update", ({ params }) => requests.update(params.sessionId, params.update))
      .onRequest("session/request_permission", ({ params }) => requests.permission(params))
      .onRequest("fs/write_text_file", async ({ params }) => {
        await requests.writeFile(params);
        return {};
      });
    app
      .onRequest("terminal/create", async ({ params }) => ({ terminalId: await requests.createTerminal(params) }))
      .onRequest("terminal/output", ({ params }) => requests.terminalOutput(params))
      .onRequest("terminal/wait_for_exit", ({ params }) => requests.terminalExit(params))
      .onRequest("terminal/kill", async ({ params }) => {
        await requests.killTerminal(params);
        return {};
      })
      .onRequest("terminal/release", async ({ params }) => {
        await requests.killTerminal(params);
        return {};
      });
    const limits = { maxMessageBytes: MAX_MESSAGE_BYTES };
    const connection = app.connect(ndJsonStream(stdio.writable, stdio.readable, limits));
    void stdio.ended.then((reason) => connection.close(new Error(reason)));
    const info = await withAnswerTimeout(
      clock,
      connection.agent.request("initialize", {
        protocolVersion: PROTOCOL_VERSION,
        // The agent reads files itself, and may look for files that don't exist. Writes and commands are subject to the rules of the chat.
        clientCapabilities: { fs: { readTextFile: false, writeTextFile: true }, terminal: true },
        clientInfo: { name: "slipway", version },
      }),
    );
    if (info.protocolVersion !== PROTOCOL_VERSION) {
      throw new Error(
        `The agent uses version ${info.protocolVersion} of the Agent Client Protocol. Slipway needs version ${PROTOCOL_VERSION}.`,
      );
    }
    if (auth_method !== "" && (info.authMethods ?? []).some(({ id }) => id === auth_method)) {
      await withAnswerTimeout(clock, connection.agent.request("authenticate", { methodId: auth_method }));
    }
    const acpConnection = new AcpConnection(connection, stdio, clock, info);
    connection.signal.addEventListener("abort", () => {
      const { reason } = connection.signal;
      if (reason instanceof Error && reason.name === "MessageTooLargeError") acpConnection.#excess = TOO_LONG_MESSAGE;
    });
    return acpConnection;
  }

  /** Returns whether an earlier session can be loaded. */
  get canLoad(): boolean {
    return this.#info.agentCapabilities?.loadSession === true;
  }

  get promptAbilities(): PromptCapabilities {
    const { image, embeddedContext } = this.#info.agentCapabilities?.promptCapabilities ?? {};
    return { images: image === true, documents: embeddedContext === true };
  }

  /** Returns whether the agent supports MCP servers over HTTP. */
  get canReachMcp(): boolean {
    return this.#info.agentCapabilities?.mcpCapabilities?.http === true;
  }

  async newSession(cwd: string, mcp: McpEndpoint | undefined): Promise<SessionInfo> {
    const mcpServers = this.#toMcpServers(mcp);
    const session = await withAnswerTimeout(
      this.#clock,
      this.#connection.agent.request("session/new", { cwd, mcpServers }),
    );
    return {
      session_id: session.sessionId,
      options: readOptions(session.modes, session.configOptions),
    };
  }

  /** The agent replays the session as updates before this resolves. */
  async loadSession(session_id: string, cwd: string, mcp: McpEndpoint | undefined): Promise<SessionInfo> {
    const request = { sessionId: session_id, cwd, mcpServers: this.#toMcpServers(mcp) };
    const answer: unknown = await withAnswerTimeout(
      this.#clock,
      this.#connection.agent.request("session/load", request),
    );
    const session = (answer ?? {}) as LoadSessionResponse;
    return { session_id, options: readOptions(session.modes, session.configOptions) };
  }

  #toMcpServers(mcp: McpEndpoint | undefined): McpServer[] {
    if (mcp === undefined || !this.canReachMcp) return [];
    const headers = [{ name: "authorization", value: `Bearer ${mcp.token}` }];
    return [{ type: "http", name: MCP_SERVER, url: mcp.url, headers }];
  }

  /** Sets an option of the session. Returns all options, because the choice may change other options. */
  async setOption(
    session_id: string,
    options: readonly SessionOption[],
    { id, via }: SessionOption,
    value: string,
  ): Promise<readonly SessionOption[]> {
    const { agent } = this.#connection;
    if (via === "mode") {
      await withAnswerTimeout(this.#clock, agent.request("session/set_mode", { sessionId: session_id, modeId: value }));
      return selectChoice(options, id, value);
    }
    const request: SetSessionConfigOptionRequest = { sessionId: session_id, configId: id, value };
    const answer: unknown = await withAnswerTimeout(this.#clock, agent.request("session/set_config_option", request));
    const { configOptions } = (answer ?? {}) as Partial<SetSessionConfigOptionResponse>;
    return applyConfig(selectChoice(options, id, value), configOptions);
  }

  /** Resolves at the end of the agent's turn, without a timeout. */
  prompt(session_id: string, prompt: ContentBlock[]): Promise<PromptResponse> {
    return this.#connection.agent.request("session/prompt", { sessionId: session_id, prompt });
  }

  cancel(session_id: string): Promise<void> {
    return this.#connection.agent.notify("session/cancel", { sessionId: session_id });
  }

  /** Describes the limit that a message of the agent exceeded; undefined if the connection was not closed for that. */
  get excess(): string | undefined {
    return this.#excess ?? this.#stdio.excess;
  }

  /** Resolves when the connection is closed. */
  get closed(): Promise<void> {
    return this.#connection.closed;
  }

  close(): void {
    this.#connection.close();
  }
}

const withAnswerTimeout = async <T>(clock: Clock, answer: Promise<T>): Promise<T> => {
  const answered = new AbortController();
  try {
    return await Promise.race([
      answer,
      pause(clock, ANSWER_TIMEOUT_MS, answered.signal).then((): T => {
        throw new Error(`The agent did not answer within ${ANSWER_TIMEOUT_MS / 1_000} seconds.`);
      }),
    ]);
  } finally {
    answered.abort();
  }
};
