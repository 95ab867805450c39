// People who create, start, stop, cancel and delete workspaces while their server dies, and checks of their builds: every acknowledged
// build exists under its number and ends, successfully or with a reason. Unacknowledged builds exist completely or not at all.

import type { Manifest } from "#schema/templates/manifest.ts";
import type { Build } from "#schema/workspaces/build.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import type { Client } from "#src/client.ts";
import { type CallResult, call, PAUSE_MS, read, retryUntilAnswered } from "./calls.ts";

/** How builds of a template behave. */
export type Kind = "succeeds" | "fails" | "hangs" | "local";

export const MANIFESTS: Record<Kind, Manifest> = {
  succeeds: { provisioner: "echo", resources: [{ name: "one" }], echo: { logs: ["begin", "end"] } },
  fails: {
    provisioner: "echo",
    resources: [{ name: "one" }],
    echo: { logs: ["begin"], error: "it was meant to fail" },
  },
  local: {
    provisioner: "local",
    resources: [
      {
        name: "one",
        agents: [{ name: "main", scripts: [{ display_name: "Long", run_on_start: true, script: "sleep 600" }] }],
      },
    ],
  },
  hangs: { provisioner: "echo", resources: [{ name: "one" }], echo: { logs: ["begin"], hang: true } },
};

/** The error of a build that ran in too many servers that died. */
const GAVE_UP = /^The (?:server stopped|job was interrupted) \d+ times\b/;

export type BuildLoadOptions = {
  name: string;
  admin: Client;
  templates: Record<Kind, string>;
  /** The kinds it creates, one at a time. */
  kinds: readonly Kind[];
  random: () => number;
  acknowledged?(): void;
};

type KnownWorkspace = {
  id: string;
  name: string;
  /** ID and number of each build that this client knows of, oldest first. */
  builds: Map<string, number>;
  /** The workspace has been deleted, so nothing more may happen to it. */
  isDeleted: boolean;
  /** The workspace was deleted and correct at the last check. */
  isChecked: boolean;
};

export class BuildLoad {
  readonly #options: BuildLoadOptions;
  readonly #workspaces: KnownWorkspace[] = [];
  readonly problems: string[] = [];
  #stopped = false;
  /** Builds by result. */
  readonly ends: Record<string, number> = {};
  unknown = 0;

  constructor(options: BuildLoadOptions) {
    this.#options = options;
  }

  /** Creates workspaces one after the other until `stop`. Completes what it has started. */
  async run(): Promise<void> {
    for (let n = 0; !this.#stopped; n++) {
      try {
        await this.#runLife(n);
      } catch (error) {
        this.problems.push(`${this.#options.name} ${n}: ${error}`);
        return;
      }
    }
  }

  stop(): void {
    this.#stopped = true;
  }

  async #runLife(n: number): Promise<void> {
    const { name, random, kinds } = this.#options;
    const kind = kinds[Math.floor(random() * kinds.length)] as Kind;
    const workspace = await this.#create(`${name}-${n}`, kind);
    if (!workspace) return;
    let build = await this.#awaitEnd(workspace, kind);
    if (build.job.status === "succeeded" && random() < 0.5) {
      await this.#build(workspace, "stop");
      build = await this.#awaitEnd(workspace, "succeeds");
    }
    do {
      await this.#build(workspace, "delete");
      build = await this.#awaitEnd(workspace, "succeeds");
    } while (build.job.status === "failed" && this.problems.length === 0);
    workspace.isDeleted = true;
  }

  /** Returns undefined if the workspace was certainly not created. */
  async #create(name: string, kind: Kind): Promise<KnownWorkspace | undefined> {
    const { admin, templates } = this.#options;
    const body = { name, template_id: templates[kind] };
    const result = await this.#call<Workspace>("POST", "/api/v2/users/me/workspaces", body);
    if (result.outcome === "refused")
      throw new Error(`a valid workspace was refused: ${result.status} ${result.message}`);
    const created = result.outcome === "acknowledged" ? result.answer : await findWorkspace(admin, name);
    if (!created) return undefined;
    const workspace = { id: created.id, name, builds: new Map<string, number>(), isDeleted: false, isChecked: false };
    workspace.builds.set(created.latest_build.id, created.latest_build.build_number);
    this.#workspaces.push(workspace);
    return workspace;
  }

  async #build(workspace: KnownWorkspace, transition: "start" | "stop" | "delete"): Promise<void> {
    let isSent = false;
    for (;;) {
      const result = await this.#call<Build>("POST", `/api/v2/workspaces/${workspace.id}/builds`, { transition });
      if (result.outcome === "acknowledged") {
        workspace.builds.set(result.answer.id, result.answer.build_number);
        return;
      }
      // After a node has died, another node may still have handled its request. Then a retry conflicts with the build.
      if (result.outcome === "refused" && !(isSent && result.status === 409))
        throw new Error(`${transition} was refused: ${result.status} ${result.message}`);
      isSent = true;
      // Either the build exists as the newest one, or it does not exist and may be requested again.
      const [newest] = await listBuilds(this.#options.admin, workspace.id);
      if (newest && !workspace.builds.has(newest.id)) {
        workspace.builds.set(newest.id, newest.build_number);
        return;
      }
      await Bun.sleep(PAUSE_MS);
    }
  }

  /** Waits for the newest build. Cancels the build if it would hang. */
  async #awaitEnd(workspace: KnownWorkspace, kind: Kind): Promise<Build> {
    const { admin, random } = this.#options;
    const id = [...workspace.builds.keys()].at(-1) as string;
    const cancelAt = performance.now() + random() * 300;
    const deadline = performance.now() + 60_000;
    for (;;) {
      const build = await read<Build>(admin, `/api/v2/workspacebuilds/${id}`);
      const { job } = build;
      if (job.completed_at !== undefined) {
        this.ends[job.status] = (this.ends[job.status] ?? 0) + 1;
        if (job.status === "failed" && !job.error)
          this.problems.push(`${workspace.name}: a build failed without a reason`);
        if (job.status === "failed" && kind !== "fails" && !GAVE_UP.test(job.error ?? ""))
          this.problems.push(`${workspace.name}: a build failed: ${job.error}`);
        return build;
      }
      if (performance.now() > deadline)
        throw new Error(`build ${build.build_number} of ${workspace.name} is ${job.status}`);
      if (kind === "hangs" && performance.now() > cancelAt && job.status !== "canceling") await this.#cancel(id);
      await Bun.sleep(PAUSE_MS);
    }
  }

  async #cancel(id: string): Promise<void> {
    const result = await this.#call("PATCH", `/api/v2/workspacebuilds/${id}/cancel`, {});
    // 400: an earlier attempt has canceled the build, and its response was lost.
    if (result.outcome === "refused" && result.status !== 400)
      throw new Error(`cancel: ${result.status} ${result.message}`);
  }

  async #call<T>(method: string, path: string, body: unknown): Promise<CallResult<T>> {
    const result = await call<T>(this.#options.admin, method, path, body, { problems: this.problems });
    if (result.outcome === "acknowledged") this.#options.acknowledged?.();
    if (result.outcome === "unknown") this.unknown += 1;
    return result;
  }

  /** Compares the server's builds with the builds that this client knows; `isFinal` also rechecks deleted workspaces. */
  async check(isFinal = false): Promise<string[]> {
    const problems = [...this.problems];
    for (const workspace of this.#workspaces) {
      if (workspace.isChecked && !isFinal) continue;
      // Builds that this client learns about during the check are not checked yet.
      const { isDeleted, builds: acknowledged } = workspace;
      const workspaceProblems = findProblems(
        workspace.name,
        new Map(acknowledged),
        await listBuilds(this.#options.admin, workspace.id),
        acknowledged,
      );
      workspace.isChecked = isDeleted && workspaceProblems.length === 0;
      problems.push(...workspaceProblems);
    }
    return problems;
  }

  /** Workspaces and builds so far. */
  get counts(): { workspaces: number; builds: number } {
    return {
      workspaces: this.#workspaces.length,
      builds: this.#workspaces.reduce((sum, { builds }) => sum + builds.size, 0),
    };
  }
}

/**
 * Returns problems with the builds of a workspace. `acknowledged`: the builds known before `listed` were read; `known`: those known after.
 */
const findProblems = (
  name: string,
  acknowledged: ReadonlyMap<string, number>,
  listed: readonly Build[],
  known: ReadonlyMap<string, number>,
): string[] => {
  const problems: string[] = [];
  const numbers = listed.map(({ build_number }) => build_number);
  if (numbers.some((number, i) => number !== listed.length - i)) problems.push(`${name}: builds ${numbers}`);
  const active = listed.filter(({ job }) => job.completed_at === undefined);
  if (active.length > 1) problems.push(`${name}: ${active.length} builds are active`);
  if (active[0] && active[0].id !== listed[0]?.id) problems.push(`${name}: an old build is active`);
  for (const [build, number] of acknowledged) {
    const listedBuild = listed.find(({ id }) => id === build);
    if (listedBuild?.build_number !== number) problems.push(`${name}: LOST build ${number}, which was acknowledged`);
  }
  // One more build may be in progress, without a response yet.
  if (listed.length > known.size + 1) problems.push(`${name}: ${listed.length} builds, ${known.size} were requested`);
  return problems;
};

/** Returns the builds of a workspace, newest first. */
const listBuilds = (admin: Client, id: string): Promise<Build[]> =>
  read<Build[]>(admin, `/api/v2/workspaces/${id}/builds?limit=100`);

/** Returns a workspace whose creation was not answered, once the server responds again; undefined if it does not exist. */
const findWorkspace = (admin: Client, name: string): Promise<Workspace | undefined> =>
  retryUntilAnswered<Workspace | undefined>(async () => {
    const path = `/api/v2/users/me/workspace/${name}`;
    const result = await call<Workspace>(admin, "GET", path);
    return result.outcome === "refused" && result.status === 404
      ? { outcome: "acknowledged", answer: undefined }
      : result;
  });
