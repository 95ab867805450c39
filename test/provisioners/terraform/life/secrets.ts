// Collects the secrets in the states of a workspace's builds, and checks that they appear nowhere else.
import { readFileSync } from "node:fs";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import type { Stage } from "./stage.ts";

type Instances = { readonly mode: string; readonly name: string; readonly instances: readonly unknown[] }[];

/** Returns the names of the resources in a state. */
export const listResourceNames = (state: string): string[] =>
  ((JSON.parse(state || "{}") as { resources?: Instances }).resources ?? [])
    .filter(({ mode, instances }) => mode === "managed" && instances.length > 0)
    .map(({ name }) => name)
    .sort();

const SECRETS = /"(?:session_token|token|ssh_private_key|access_token)": "([^"]{8,})"/g;

export class Secrets {
  readonly #stage: Stage;
  readonly #known = new Set<string>();

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  recordSecrets(state: string): void {
    // Logs are line-based, so one line of a multi-line key is enough.
    for (const [, secret = ""] of state.matchAll(SECRETS)) this.#known.add(secret.split("\\n")[1] ?? secret);
  }

  /** Whether the states contained the owner's token. */
  get hasSession(): boolean {
    return [...this.#known].some((secret) => /^\w{10}-\w{20,}$/.test(secret));
  }

  /** Checks that no secret is in the build's logs, its API responses, or the files of server and worker. */
  async assertHidden({ id, latest_build: { id: build } }: Workspace, step: string): Promise<void> {
    const { admin } = this.#stage;
    if (this.#known.size === 0) throw new Error(`${step}: there is no secret to look for`);
    const fetchText = async (path: string): Promise<string> => (await admin.fetch("GET", `/api/v2/${path}`)).text();
    const texts: Record<string, string> = {
      "the log of the build": await fetchText(`workspacebuilds/${build}/logs`),
      "the build's timings": await fetchText(`workspacebuilds/${build}/timings`),
      "the workspace": await fetchText(`workspaces/${id}?include_deleted=true`),
      "the log of server or worker": this.#stage.logged(),
    };
    for (const file of this.#stage.stored()) texts[file] = readIfPossible(file);
    for (const [location, content] of Object.entries(texts)) {
      for (const secret of this.#known)
        if (content.includes(secret)) throw new Error(`${step}: a secret is in ${location}`);
    }
  }
}

const readIfPossible = (file: string): string => {
  try {
    return readFileSync(file, "latin1");
  } catch {
    // The process has just ended.
    return "";
  }
};
