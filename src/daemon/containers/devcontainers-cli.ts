// What makes devcontainers: an interface of one function, and the real program behind it, the `devcontainer` command line tool, when
// the workspace has it. It is told which folder and which file; it says in JSON what came of it.
import type { Clock } from "#base/clock.ts";
import type { LogLevel } from "#schema/log-level.ts";
import type { Environment } from "../environment.ts";
import type { ProcessGroups } from "../scripts/groups.ts";
import { runProcess } from "../scripts/process.ts";

/**
 * A devcontainer that is up: who works in it, where its project lies there, and what its programs find in their environment. `problem`: a
 * command of its lifecycle failed, which does not keep people out.
 */
export type UpDevcontainer = {
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
  /** The container there is goes first; else it is started, or taken as it runs. */
  replace: boolean;
};

export interface DevcontainerEngine {
  /** Brings the container of this devcontainer up. Rejects in words for people when none exists in the end. */
  up(asked: UpRequest): Promise<UpDevcontainer>;
}

/** Building images takes time; after this nobody believes in it any more. */
const TIMEOUT_MS = 30 * 60_000;
const OUTPUT_BYTES = 256 * 1024;
const SHOWN_CHARS = 2_000;

type Options = {
  clock: Clock;
  groups: ProcessGroups;
  env: Environment;
  /** Takes a line that a build or a command of the lifecycle printed. */
  onLine: (level: LogLevel, line: string) => void;
};

/** What the program says in the end; `problem` unless it went well. */
type Outcome = { readonly said: Readonly<Record<string, unknown>>; readonly problem?: string };

export class DevcontainerCli implements DevcontainerEngine {
  readonly #options: Options;

  constructor(options: Options) {
    this.#options = options;
  }

  async up(asked: UpRequest): Promise<UpDevcontainer> {
    const { onLine } = this.#options;
    const first = await this.#run(asked, asked.replace ? ["--remove-existing-container"] : []);
    if (first.problem === undefined) return parseOutcome(first.said);
    onLine("error", `Devcontainer ${asked.name}: ${first.problem}`);
    // With a container there, only a command inside it failed: people need a way in to repair that.
    if (typeof first.said.containerId !== "string") throw new Error(first.problem);
    const second = await this.#run(asked, ["--skip-post-create"]);
    if (second.problem !== undefined) throw new Error(first.problem);
    return { ...parseOutcome(second.said), problem: first.problem };
  }

  async #run({ name, workspace_folder, config_path }: UpRequest, more: readonly string[]): Promise<Outcome> {
    const { clock, groups, env, onLine } = this.#options;
    const program = Bun.which("devcontainer", { PATH: env.PATH ?? "" });
    if (program === null) throw new Error("The workspace has no `devcontainer` program.");
    const said = { stdout: "", stderr: "" };
    const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
    const printed = new PrintedLines((line) => onLine("info", `Devcontainer ${name}: ${line}`));
    const { exit_code, timed_out } = await runProcess({
      clock,
      groups,
      env,
      command: [
        ...[program, "up", "--log-format", "json", "--include-merged-configuration", ...more],
        ...["--workspace-folder", workspace_folder, "--config", config_path],
      ],
      directory: workspace_folder,
      timeout_ms: TIMEOUT_MS,
      onOutput: (from, bytes) => {
        const text = decoders[from].decode(bytes, { stream: true });
        said[from] = (said[from] + text).slice(-OUTPUT_BYTES);
        if (from === "stderr") printed.push(text);
      },
    });
    if (timed_out) throw new Error("The `devcontainer` program did not end within 30 minutes.");
    const last = lastObject(said.stdout);
    const { outcome, containerId, message, description } = last;
    if (exit_code === 0 && outcome === "success" && typeof containerId === "string") return { said: last };
    const words = [message, description].filter((one): one is string => typeof one === "string" && one !== "");
    const problem = words.join(" ") || said.stderr.trim() || `It ended with code ${exit_code}.`;
    return { said: last, problem: problem.slice(-SHOWN_CHARS) };
  }
}

const parseOutcome = ({ containerId, remoteUser, remoteWorkspaceFolder, mergedConfiguration }: Outcome["said"]) => {
  const text = (value: unknown): string => (typeof value === "string" ? value : "");
  const { remoteEnv } = (mergedConfiguration ?? {}) as { readonly remoteEnv?: Readonly<Record<string, unknown>> };
  const remote_env: Record<string, string> = {};
  // Null takes a variable away, which a program that starts over has not got.
  for (const [name, value] of Object.entries(remoteEnv ?? {})) if (typeof value === "string") remote_env[name] = value;
  const [container_id, remote_user] = [text(containerId), text(remoteUser)];
  return { container_id, remote_user, remote_folder: text(remoteWorkspaceFolder), remote_env };
};

const MAX_PRINTED_LINES = 5_000;
// Colors and the like.
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROLS = /\u001b\[[0-9;?]*[a-zA-Z]|[\u0000-\u0008\u000b-\u001f\u007f]/g;

/** Finds what programs printed among the log's JSON lines. Lines about commands are left out: they have values of the environment. */
class PrintedLines {
  readonly #take: (line: string) => void;
  #rest = "";
  #left = MAX_PRINTED_LINES;

  constructor(take: (line: string) => void) {
    this.#take = take;
  }

  push(text: string): void {
    const lines = (this.#rest + text).split("\n");
    this.#rest = (lines.pop() ?? "").slice(-OUTPUT_BYTES);
    for (const line of lines) for (const printed of printedIn(line)) this.#say(printed);
  }

  #say(line: string): void {
    const plain = line.replaceAll(CONTROLS, "").trimEnd();
    if (plain === "" || this.#left === 0) return;
    this.#left -= 1;
    this.#take(plain);
  }
}

const printedIn = (line: string): string[] => {
  try {
    const { type, text } = JSON.parse(line) as { readonly type?: unknown; readonly text?: unknown };
    return type === "raw" && typeof text === "string" ? text.split(/\r?\n/) : [];
  } catch {
    return [];
  }
};

/** The last line that is a JSON object; what came before are lines of a log. */
const lastObject = (text: string): Record<string, unknown> => {
  for (const line of text.trim().split("\n").reverse()) {
    try {
      const found: unknown = JSON.parse(line);
      if (typeof found === "object" && found !== null && "outcome" in found) return found as Record<string, unknown>;
    } catch {
      // A line for people.
    }
  }
  return {};
};
