// Creates devcontainers with the `devcontainer` command line tool, if the workspace has it. The tool takes a folder and a configuration
// file, and prints its result as JSON.
import type { Clock } from "#base/clock.ts";
import type { LogLevel } from "#schema/log-level.ts";
import type { Environment } from "../environment.ts";
import type { ProcessGroups } from "../scripts/groups.ts";
import { runProcess } from "../scripts/process.ts";

/**
 * A running devcontainer: its user, the project's path in the container, and the environment of its programs. `problem`: why a lifecycle
 * command failed; the container can be used nevertheless.
 */
export type RunningDevcontainer = {
  container_id: string;
  remote_user: string;
  remote_folder: string;
  remote_env: Readonly<Record<string, string>>;
  problem?: string;
};

export type UpRequest = {
  name: string;
  workspace_folder: string;
  config_path: string;
  /** Removes an existing container first; otherwise the container is started or used as it runs. */
  replace: boolean;
};

export interface DevcontainerEngine {
  /** Starts the container of this devcontainer. Rejects with a readable message if no container runs afterwards. */
  up(requested: UpRequest): Promise<RunningDevcontainer>;
}

/** Building images takes time; after this timeout, the build is considered stuck. */
const UP_TIMEOUT_MS = 30 * 60_000;
const MAX_OUTPUT_BYTES = 256 * 1024;
const MAX_PROBLEM_CHARS = 2_000;

type Options = {
  clock: Clock;
  groups: ProcessGroups;
  env: Environment;
  /** Receives each line printed by a build or a lifecycle command. */
  onLine: (level: LogLevel, line: string) => void;
};

/** The result that the program printed last; `problem` unless it succeeded. */
type Outcome = { readonly result: Readonly<Record<string, unknown>>; readonly problem?: string };

export class DevcontainerCli implements DevcontainerEngine {
  readonly #options: Options;

  constructor(options: Options) {
    this.#options = options;
  }

  async up(requested: UpRequest): Promise<RunningDevcontainer> {
    const { onLine } = this.#options;
    const firstRun = await this.#run(requested, requested.replace ? ["--remove-existing-container"] : []);
    if (firstRun.problem === undefined) return parseOutcome(firstRun.result);
    onLine("error", `Devcontainer ${requested.name}: ${firstRun.problem}`);
    // If there is a container, only a command inside it failed, and people need access to fix that.
    if (typeof firstRun.result.containerId !== "string") throw new Error(firstRun.problem);
    const secondRun = await this.#run(requested, ["--skip-post-create"]);
    if (secondRun.problem !== undefined) throw new Error(firstRun.problem);
    return { ...parseOutcome(secondRun.result), problem: firstRun.problem };
  }

  async #run({ name, workspace_folder, config_path }: UpRequest, extraArgs: readonly string[]): Promise<Outcome> {
    const { clock, groups, env, onLine } = this.#options;
    const program = Bun.which("devcontainer", { PATH: env.PATH ?? "" });
    if (program === null) throw new Error("The workspace has no `devcontainer` program.");
    const output = { stdout: "", stderr: "" };
    const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
    const printedLines = new PrintedLines((line) => onLine("info", `Devcontainer ${name}: ${line}`));
    const { exit_code, timed_out } = await runProcess({
      clock,
      groups,
      env,
      command: [
        ...[program, "up", "--log-format", "json", "--include-merged-configuration", ...extraArgs],
        ...["--workspace-folder", workspace_folder, "--config", config_path],
      ],
      directory: workspace_folder,
      timeout_ms: UP_TIMEOUT_MS,
      onOutput: (from, bytes) => {
        const text = decoders[from].decode(bytes, { stream: true });
        output[from] = (output[from] + text).slice(-MAX_OUTPUT_BYTES);
        if (from === "stderr") printedLines.push(text);
      },
    });
    if (timed_out) throw new Error("The `devcontainer` program did not end within 30 minutes.");
    const last = parseOutcomeLine(output.stdout);
    const { outcome, containerId, message, description } = last;
    if (exit_code === 0 && outcome === "success" && typeof containerId === "string") return { result: last };
    const sentences = [message, description].filter((one): one is string => typeof one === "string" && one !== "");
    const problem = sentences.join(" ") || output.stderr.trim() || `It ended with code ${exit_code}.`;
    return { result: last, problem: problem.slice(-MAX_PROBLEM_CHARS) };
  }
}

const parseOutcome = ({ containerId, remoteUser, remoteWorkspaceFolder, mergedConfiguration }: Outcome["result"]) => {
  const toText = (value: unknown): string => (typeof value === "string" ? value : "");
  const { remoteEnv } = (mergedConfiguration ?? {}) as { readonly remoteEnv?: Readonly<Record<string, unknown>> };
  const remote_env: Record<string, string> = {};
  // Null removes a variable, but a newly started program does not have it anyway.
  for (const [name, value] of Object.entries(remoteEnv ?? {})) if (typeof value === "string") remote_env[name] = value;
  const [container_id, remote_user] = [toText(containerId), toText(remoteUser)];
  return { container_id, remote_user, remote_folder: toText(remoteWorkspaceFolder), remote_env };
};

const MAX_PRINTED_LINES = 5_000;
// Colors, cursor movements and other control characters.
// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern matches control characters
const CONTROL_SEQUENCES = /\u001b\[[0-9;?]*[a-zA-Z]|[\u0000-\u0008\u000b-\u001f\u007f]/g;

/** Finds program output among the log's JSON lines. Skips lines about commands, because they contain environment values. */
class PrintedLines {
  readonly #onLine: (line: string) => void;
  #partialLine = "";
  #remainingLines = MAX_PRINTED_LINES;

  constructor(onLine: (line: string) => void) {
    this.#onLine = onLine;
  }

  push(text: string): void {
    const lines = (this.#partialLine + text).split("\n");
    this.#partialLine = (lines.pop() ?? "").slice(-MAX_OUTPUT_BYTES);
    for (const line of lines) for (const printedLine of parsePrintedLines(line)) this.#emit(printedLine);
  }

  #emit(line: string): void {
    const plain = line.replaceAll(CONTROL_SEQUENCES, "").trimEnd();
    if (plain === "" || this.#remainingLines === 0) return;
    this.#remainingLines -= 1;
    this.#onLine(plain);
  }
}

const parsePrintedLines = (line: string): string[] => {
  try {
    const { type, text } = JSON.parse(line) as { readonly type?: unknown; readonly text?: unknown };
    return type === "raw" && typeof text === "string" ? text.split(/\r?\n/) : [];
  } catch {
    return [];
  }
};

/** Returns the last line that is a JSON object; earlier lines are log output. */
const parseOutcomeLine = (output: string): Record<string, unknown> => {
  for (const line of output.trim().split("\n").reverse()) {
    try {
      const parsed: unknown = JSON.parse(line);
      if (typeof parsed === "object" && parsed !== null && "outcome" in parsed)
        return parsed as Record<string, unknown>;
    } catch {
      // A plain text line.
    }
  }
  return {};
};
