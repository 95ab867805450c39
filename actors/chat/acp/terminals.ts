// Runs commands for a coding agent: the workspace's daemon executes them after the chat's rules, and a person where required, have approved
// them. The newest output is kept for the agent and for the chat's followers. Terminals end with the turn or the agent.
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
  bytes: number;
  /** The bytes of output that the agent asked for. */
  readonly limit: number;
  exit: TerminalExit | undefined;
  readonly over: PromiseWithResolvers<TerminalExit>;
};

const MAX_OPEN = 32;
/** Maximum bytes of output that are kept per terminal. */
const MAX_OUTPUT_BYTES = 256 * 1024;
/** Maximum runtime of a command. */
const MAX_RUNTIME_MS = 24 * 3_600_000;
/** The agent sees its workspace's output unmasked; output is masked when it is shown to people. */
const UNMASKED = new SecretMask({ texts: [], agent_tokens: new Set(), keys: new Map() });

export class Terminals {
  readonly #deps: Deps;
  readonly #getFolder: () => string | undefined;
  readonly #onOutput: (id: string) => void;
  readonly #terminals = new Map<string, Terminal>();

  /** `getFolder` returns the agent's folder, if known. `onOutput`: called when a terminal has printed output. */
  constructor(deps: Deps, getFolder: () => string | undefined, onOutput: (id: string) => void) {
    this.#deps = deps;
    this.#getFolder = getFolder;
    this.#onOutput = onOutput;
  }

  /** Runs the command once `requestApproval` allows it. Rejects with a readable message. `onEnd` receives the call's answer. */
  async create(
    { command, args, env, cwd, outputByteLimit }: CreateTerminalRequest,
    requestApproval: (call: ServerCall) => Promise<boolean>,
    onEnd: (tool_call_id: string, answer: ToolAnswer) => void,
  ): Promise<string> {
    if (this.#running.length >= MAX_OPEN) throw new Error(`${MAX_OPEN} commands are already running.`);
    const id = uuid();
    const commandLine = args && args.length > 0 ? quoteWords([command, ...args]) : command;
    const variables = (env ?? []).map(({ name, value }) => `${name}=${value}`);
    // Rules and people must see the variables, because they can change which program a command runs.
    const line = variables.length === 0 ? commandLine : quoteWords(["env", ...variables, "sh", "-c", commandLine]);
    const options = cwd && !isSameFolder(cwd, this.#getFolder()) ? { workdir: cwd } : {};
    const call = { tool_call_id: `terminal-${id}`, tool_name: "execute", args: { command: line, ...options } };
    if (!(await requestApproval(call))) throw new Error("The chat's rules or its owner did not allow this command.");
    const directory = cwd ? { directory: cwd } : {};
    await startProcess(this.#deps.agent, { id, command: line, ...directory });
    const limit = Math.min(outputByteLimit ?? MAX_OUTPUT_BYTES, MAX_OUTPUT_BYTES);
    const terminal: Terminal = { output: "", bytes: 0, limit, exit: undefined, over: Promise.withResolvers() };
    this.#evictOldest();
    this.#terminals.set(id, terminal);
    void this.#follow(id, terminal).then((exit) => {
      terminal.exit = exit;
      terminal.over.resolve(exit);
      const output = toReadableText(terminal);
      const result = { output, success: exit.exitCode === 0, exit_code: exit.exitCode };
      onEnd(call.tool_call_id, { result, is_error: false });
    });
    return id;
  }

  /** Returns the output so far. Throws for an unknown terminal. */
  output(id: string): TerminalOutput {
    const { output, bytes, limit, exit } = this.#find(id);
    return {
      output: tailBytes(output, limit),
      truncated: bytes > limit,
      ...(exit === undefined ? {} : { exitStatus: exit }),
    };
  }

  /** Resolves when the command has exited. */
  async exit(id: string): Promise<TerminalExit> {
    return this.#find(id).over.promise;
  }

  /** Kills the command and its child processes. Its output stays readable. */
  async kill(id: string): Promise<void> {
    if (this.#find(id).exit === undefined) await endProcess(this.#deps, id);
  }

  /** Returns the unmasked output, which callers must mask before they show it to people; undefined for an unknown terminal. */
  readText(id: string): string | undefined {
    const terminal = this.#terminals.get(id);
    return terminal && toReadableText(terminal);
  }

  /** Kills all running commands. */
  endAll(): void {
    for (const id of this.#running) void endProcess(this.#deps, id);
  }

  get #running(): string[] {
    return [...this.#terminals].flatMap(([id, { exit }]) => (exit === undefined ? [id] : []));
  }

  #find(id: string): Terminal {
    const terminal = this.#terminals.get(id);
    if (!terminal) throw new Error(`There is no terminal "${id}".`);
    return terminal;
  }

  /** Output of finished terminals is kept for some time, because tool calls show it. */
  #evictOldest(): void {
    if (this.#terminals.size < 2 * MAX_OPEN) return;
    const oldest = [...this.#terminals].find(([, { exit }]) => exit !== undefined);
    if (oldest) this.#terminals.delete(oldest[0]);
  }

  async #follow(id: string, terminal: Terminal): Promise<TerminalExit> {
    const write = (text: string): void => {
      terminal.bytes += Buffer.byteLength(text);
      terminal.output = tailBytes(terminal.output + text, MAX_OUTPUT_BYTES);
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

/** Returns the output without a line that was cut at its beginning: half a secret could not be masked. */
const toReadableText = ({ output, bytes }: Terminal): string =>
  bytes > MAX_OUTPUT_BYTES ? skipCutLine(output) : output;

/** Returns the end of the text within the limit in bytes, starting at a whole character. */
const tailBytes = (text: string, limit: number): string => {
  const bytes = Buffer.from(text);
  if (bytes.byteLength <= limit) return text;
  let start = bytes.byteLength - limit;
  while (((bytes[start] ?? 0) & 0xc0) === 0x80) start += 1;
  return bytes.subarray(start).toString();
};
