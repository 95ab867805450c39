// What makes devcontainers: an interface of one function, and the real program behind it, the `devcontainer` command line tool, when
// the workspace has it. It is told which folder and which file; it says in JSON what came of it.
import type { Clock } from "#base/clock.ts";
import type { Environment } from "../environment.ts";
import type { ProcessGroups } from "../scripts/groups.ts";
import { runProcess } from "../scripts/process.ts";

/** A devcontainer that is up: who works in it, and where its project lies there. */
export type UpDevcontainer = { container_id: string; remote_user: string; remote_folder: string };

export type UpRequest = {
  workspace_folder: string;
  config_path: string;
  /** The container there is goes first; else it is started, or taken as it runs. */
  replace: boolean;
};

export interface DevcontainerEngine {
  /** Brings the container of this devcontainer up. Rejects in words for people. */
  up(asked: UpRequest): Promise<UpDevcontainer>;
}

/** Building images takes time; after this nobody believes in it any more. */
const LIMIT_MS = 30 * 60_000;
const OUTPUT_BYTES = 256 * 1024;
const SHOWN_CHARS = 2_000;

export class DevcontainerCli implements DevcontainerEngine {
  readonly #options: { clock: Clock; groups: ProcessGroups; env: Environment };

  constructor(options: { clock: Clock; groups: ProcessGroups; env: Environment }) {
    this.#options = options;
  }

  async up({ workspace_folder, config_path, replace }: UpRequest): Promise<UpDevcontainer> {
    const { env } = this.#options;
    const program = Bun.which("devcontainer", { PATH: env.PATH ?? "" });
    if (program === null) throw new Error("The workspace has no `devcontainer` program.");
    const said = { stdout: "", stderr: "" };
    const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
    const { exit_code, timed_out } = await runProcess({
      ...this.#options,
      command: [
        ...[program, "up", "--log-format", "json", ...(replace ? ["--remove-existing-container"] : [])],
        ...["--workspace-folder", workspace_folder, "--config", config_path],
      ],
      directory: workspace_folder,
      timeout_ms: LIMIT_MS,
      onOutput: (from, bytes) => {
        said[from] = (said[from] + decoders[from].decode(bytes, { stream: true })).slice(-OUTPUT_BYTES);
      },
    });
    if (timed_out) throw new Error("The `devcontainer` program did not end within 30 minutes.");
    const { outcome, containerId, remoteUser, remoteWorkspaceFolder, message, description } = lastObject(said.stdout);
    if (exit_code === 0 && outcome === "success" && typeof containerId === "string") {
      const text = (value: unknown): string => (typeof value === "string" ? value : "");
      return { container_id: containerId, remote_user: text(remoteUser), remote_folder: text(remoteWorkspaceFolder) };
    }
    const words = [message, description].filter((one): one is string => typeof one === "string" && one !== "");
    throw new Error((words.join(" ") || said.stderr.trim() || `It ended with code ${exit_code}.`).slice(-SHOWN_CHARS));
  }
}

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
