// Runs commands for a coding agent in the workspace, once the chat's rules or a person have approved them. Keeps the newest output for the
// agent and the chat's followers. Terminals end with the turn or the agent.
import type { Clock } from "#base/clock.ts";
import { uuid } from "#base/ids.ts";
import { isSameFolder } from "#base/system/same-folder.ts";
import { quoteWords } from "#src/acp/calls.ts";
import type { CreateTerminalRequest, TerminalExit, TerminalOutput } from "#src/acp/connection.ts";
import { SecretMask, skipCutLine } from "#src/tools/mask.ts";
import { endProcess, followProcess, startProcess } from "#src/tools/processes/processes.ts";
import type { ToolAnswer } from "#src/tools/run.ts";
import type { ToolAgent } from "#src/tools/tool.ts";
import type { ServerCall } from "./events.ts";

type Deps = { readonly clock: Clock; readonly agent: ToolAgent };

type Terminal = {
  /** The newest output, at most `MAX_OUTPUT_BYTES`. */
  output: string;
  /** The size of all output so far. */
  totalBytes: number;
  /** The maximum size of the output that the agent receives. */
  readonly maxBytes: number;
  /** How the command has exited; undefined while it runs. */
  exit: TerminalExit | undefined;
  readonly exited: PromiseWithResolvers<TerminalExit>;
};

/** Maximum commands that run at the same time. */
const MAX_RUNNING = 32;
/** Maximum bytes of output that are kept per terminal. */
const MAX_OUTPUT_BYTES = 256 * 1024;
/** Maximum runtime of a command. */
const MAX_RUNTIME_MS = 24 * 3_600_000;
/** Masks nothing, because the agent may see its workspace's output. AgentStep masks the output for people. */
const UNMASKED = new SecretMask({ texts: [], agent_tokens: new Set(), keys: new Map() });

export class Terminals {
  readonly #deps: Deps;
  readonly #getFolder: () => string | undefined;
  readonly #onOutput: (id: string) => void;
  readonly #terminals = new Map<string, Terminal>();

  /** `getFolder` returns the agent's working directory, if known. */
  constructor(deps: Deps, getFolder: () => string | undefined, onOutput: (id: string) => void) {
    this.#deps = deps;
    this.#getFolder = getFolder;
    this.#onOutput = onOutput;
  }

  /**
   * Asks for approval and starts the command. Returns the terminal's ID once the command runs, or rejects with a readable message. `onEnd`
   * gets the command's result as the answer to its call.
   */
  async create(
    { command, args, env, cwd, outputByteLimit }: CreateTerminalRequest,
    requestApproval: (call: ServerCall) => Promise<boolean>,
    onEnd: (tool_call_id: string, answer: ToolAnswer) => void,
  ): Promise<string> {
    if (this.#runningIds.length >= MAX_RUNNING) throw new Error(`${MAX_RUNNING} commands are already running.`);
    const id = uuid();
    const withArgs = args && args.length > 0 ? quoteWords([command, ...args]) : command;
    const variables = (env ?? []).map(({ name, value }) => `${name}=${value}`);
    // Rules and people must see the variables, because they can change which program a command runs.
    const commandLine = variables.length === 0 ? withArgs : quoteWords(["env", ...variables, "sh", "-c", withArgs]);
    const workdir = cwd && !isSameFolder(cwd, this.#getFolder()) ? { workdir: cwd } : {};
    const call = { tool_call_id: `terminal-${id}`, tool_name: "execute", args: { command: commandLine, ...workdir } };
    if (!(await requestApproval(call))) throw new Error("The chat's rules or its owner did not allow this command.");
    const directory = cwd ? { directory: cwd } : {};
    await startProcess(this.#deps.agent, { id, command: commandLine, ...directory });
    const maxBytes = Math.min(outputByteLimit ?? MAX_OUTPUT_BYTES, MAX_OUTPUT_BYTES);
    const exited = Promise.withResolvers<TerminalExit>();
    const terminal: Terminal = { output: "", totalBytes: 0, maxBytes, exit: undefined, exited };
    this.#forgetOldest();
    this.#terminals.set(id, terminal);
    void this.#follow(id, terminal).then((exit) => {
      terminal.exit = exit;
      exited.resolve(exit);
      const output = toReadableText(terminal);
      const result = { output, success: exit.exitCode === 0, exit_code: exit.exitCode };
      onEnd(call.tool_call_id, { result, is_error: false });
    });
    return id;
  }

  /** Returns the output so far. Throws for an unknown terminal. */
  output(id: string): TerminalOutput {
    const { output, totalBytes, maxBytes, exit } = this.#require(id);
    return {
      output: takeLastBytes(output, maxBytes),
      truncated: totalBytes > maxBytes,
      ...(exit === undefined ? {} : { exitStatus: exit }),
    };
  }

  /** Resolves when the command has exited. */
  async exit(id: string): Promise<TerminalExit> {
    return this.#require(id).exited.promise;
  }

  /** Kills the command and its child processes. Its output stays readable. */
  async kill(id: string): Promise<void> {
    if (this.#require(id).exit === undefined) await endProcess(this.#deps, id);
  }

  /** Returns the output, which callers must mask before people see it; undefined for an unknown terminal. */
  readText(id: string): string | undefined {
    const terminal = this.#terminals.get(id);
    return terminal && toReadableText(terminal);
  }

  /** Kills all running commands. */
  endAll(): void {
    for (const id of this.#runningIds) void endProcess(this.#deps, id);
  }

  get #runningIds(): string[] {
    return [...this.#terminals].flatMap(([id, { exit }]) => (exit === undefined ? [id] : []));
  }

  #require(id: string): Terminal {
    const terminal = this.#terminals.get(id);
    if (!terminal) throw new Error(`There is no terminal "${id}".`);
    return terminal;
  }

  /** Limits how many finished terminals are kept. Tool calls may still show the output of recent ones. */
  #forgetOldest(): void {
    if (this.#terminals.size < 2 * MAX_RUNNING) return;
    const oldest = [...this.#terminals].find(([, { exit }]) => exit !== undefined);
    if (oldest) this.#terminals.delete(oldest[0]);
  }

  async #follow(id: string, terminal: Terminal): Promise<TerminalExit> {
    const write = (text: string): void => {
      terminal.totalBytes += Buffer.byteLength(text);
      terminal.output = takeLastBytes(terminal.output + text, MAX_OUTPUT_BYTES);
      this.#onOutput(id);
    };
    const never = new AbortController().signal;
    const context = { agent: this.#deps.agent, clock: this.#deps.clock, mask: UNMASKED, write };
    try {
      const { process } = await followProcess(context, id, MAX_RUNTIME_MS, never);
      if (process.running) await endProcess(this.#deps, id);
      return { exitCode: process.exit_code, signal: process.exit_code === null ? "SIGKILL" : null };
    } catch {
      // The workspace stopped, which ended the command.
      return { exitCode: null, signal: "SIGKILL" };
    }
  }
}

/** Returns the output without a first line that was cut off, because masking could miss the rest of a secret in it. */
const toReadableText = ({ output, totalBytes }: Terminal): string =>
  totalBytes > MAX_OUTPUT_BYTES ? skipCutLine(output) : output;

/** Returns the end of the text, at most `maxBytes` long and starting at a whole character. */
const takeLastBytes = (text: string, maxBytes: number): string => {
  const bytes = Buffer.from(text);
  if (bytes.byteLength <= maxBytes) return text;
  let start = bytes.byteLength - maxBytes;
  while (((bytes[start] ?? 0) & 0xc0) === 0x80) start += 1;
  return bytes.subarray(start).toString();
};
