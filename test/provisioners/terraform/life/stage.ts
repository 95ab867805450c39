// The environment of Terraform workspaces in tests: a server, a worker and a model. Server and worker can be killed at any time, and are
// restarted.
import { mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import type { Client } from "#src/client.ts";
import { ServerSlot } from "#test/crash/server.ts";
import { needs } from "#test/support/needs.ts";
import { ADMIN } from "#test/support/server.ts";
import { findProcesses, toTerraformOptions } from "#test/support/terraform.ts";
import { until } from "#test/support/until.ts";
import { makeKey, startWorker, type WorkerProcess } from "#test/support/worker.ts";
import { startRunningModel } from "./model.ts";

export type Victim = "server" | "worker";

/** With `builtBy: "worker"`, the worker builds all templates, otherwise only templates that request its tags. */
export const openStage = async (builtBy: Victim) => {
  await using stack = new AsyncDisposableStack();
  const place = stack.use(await ServerSlot.make());
  const model = stack.use(await startRunningModel());
  const parts = join(place.scratch, "parts");
  mkdirSync(parts);
  const { env: tools = {} } = toTerraformOptions(join(place.scratch, "tools"));
  const env = {
    ...tools,
    SLIPWAY_CHAT_TITLES: "false",
    SLIPWAY_LOG_LEVEL: "debug",
    SLIPWAY_TERRAFORM_WORKERS: String(builtBy === "worker"),
  };
  let endedLog = "";
  await place.start({ env });
  const admin = await place.client.signIn(ADMIN.email, ADMIN.password);
  const provider = { provider: "openai-compat", display_name: "Runner", base_url: `${model.url}/v1`, api_key: "k" };
  const { id } = await admin.post<{ id: string }>("/api/v2/chats/providers", provider);
  await admin.post("/api/v2/chats/model-configs", { provider_id: id, model: "runner", is_default: true });
  const [organization] = await admin.get<{ id: string }[]>("/api/v2/users/me/organizations");

  const { key } = await makeKey(admin);
  const directory = join(place.scratch, "worker");
  mkdirSync(directory);
  const startStageWorker = (): WorkerProcess =>
    startWorker({
      url: new URL(admin.url),
      key,
      name: "away",
      directory,
      kinds: "terraform",
      tags: { region: "eu", kind: "vm" },
      env: { SLIPWAY_WORKER_TERRAFORM_CLI_CONFIG: join(needs.terraform.file, "rc"), SLIPWAY_WORKER_LOG_LEVEL: "debug" },
    });
  let worker = startStageWorker();
  stack.defer(() => worker[Symbol.asyncDispose]());
  await worker.connected();

  const kill = {
    server: async () => {
      place.currentProcess.kill("SIGKILL");
      endedLog += (await place.currentProcess.ended).errors;
      await place.start({ env });
    },
    worker: async () => {
      worker.signal("SIGKILL");
      await worker.exited;
      endedLog += worker.errors();
      worker = startStageWorker();
      await worker.connected();
    },
  };
  const resources = stack.move();
  return {
    place,
    admin,
    parts,
    organization_id: organization?.id ?? "",
    /** Kills the server or the worker and waits until it runs again. */
    kill: (victim: Victim) => kill[victim](),
    /** Returns the logs of server and worker, at the level debug. */
    logged: () => endedLog + place.currentProcess.errors + worker.errors(),
    /** Returns the build folders of this workspace, in the server and in the worker. */
    folders: (workspace_id: string) =>
      [place.directory, directory].map((root) => join(root, "terraform", "builds", workspace_id)),
    /** Returns all files of server and worker. */
    stored: () => [place.directory, directory].flatMap(filesBelow),
    /** Returns the Terraform processes of any build, with their children. */
    running: () => findProcesses(join(place.scratch)).filter(isTerraform),
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
};
export type Stage = Awaited<ReturnType<typeof openStage>>;

const isTerraform = (pid: number): boolean => {
  try {
    return /terraform|tofu/.test(readFileSync(`/proc/${pid}/comm`, "utf8"));
  } catch {
    return false;
  }
};

/** Returns the files below a folder, without plugins, which are shared and large. */
const filesBelow = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => !path.includes("/plugins/") && !path.includes("/providers/"))
    .map((path) => join(folder, path))
    .filter((path) => statSync(path, { throwIfNoEntry: false })?.isFile());

const UNFINISHED_STATUSES = ["pending", "running", "canceling"];

/** Returns the workspace once its newest build has ended. The server may be restarting. */
export const awaitSettled = (client: Client, id: string): Promise<Workspace> =>
  until(
    async () => {
      const workspace = await client
        .get<Workspace>(`/api/v2/workspaces/${id}?include_deleted=true`)
        .catch(() => undefined);
      return workspace && !UNFINISHED_STATUSES.includes(workspace.latest_build.job.status) ? workspace : undefined;
    },
    { timeoutMs: 120_000, what: "the end of the build" },
  );
