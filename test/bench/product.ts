// The product in the benchmark: starts it on an empty data directory, signs in, and creates agents through its REST API. Only this file
// knows the template format (provisioner `echo`: it starts no process, and agents and tokens are in the manifest).
import { Database } from "bun:sqlite";
import { existsSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { systemClock } from "#base/clock.ts";
import { openEncryption } from "#base/encryption.ts";
import { type LocalStore, openLocalStore } from "#db/engine/local.ts";
import type { Query, Value } from "#db/engine/sql.ts";
import { readWorkspace } from "#domain/workspaces/present.ts";
import type { ApiContext } from "#src/api/context.ts";
import type { GetSample } from "./floor.ts";
import { findFreePort } from "./machine.ts";
import { type RunningServer, startServer } from "./process.ts";
import type { Bench } from "./row.ts";

export interface Product extends RunningServer {
  /** Session token of the first user, the administrator. */
  adminToken: string;
  dataDir: string;
}

export interface SeededAgent {
  agentId: string;
  token: string;
  workspaceId: string;
  logSourceId: string;
}

export interface ProductOptions {
  /** The start command without arguments: the compiled binary, or bun and the entry file. */
  command: string[];
  dataDir: string;
  env?: Record<string, string>;
  core: number | undefined;
}

const admin = { email: "bench@example.com", username: "bench", password: "Bench-only-5b1f0c" };
/** The manifest allows 16 agents per resource. */
const agentsPerResource = 16;
const agentsPerWorkspace = 6 * agentsPerResource;

/** Returns the product's command: the given binary, else dist/slipway, else the source; undefined if none of them exists. */
export function productCommand(binary?: string): string[] | undefined {
  const root = join(import.meta.dir, "../..");
  if (binary) return [binary];
  if (existsSync(join(root, "dist/slipway"))) return [join(root, "dist/slipway")];
  const main = join(root, "src/main.ts");
  return existsSync(main) ? [process.execPath, main] : undefined;
}

/** Returns the `serve` command with a port and a data directory, for startProduct and for the row that measures startup. */
export function serveCommand(command: string[], port: number, dataDir: string): string[] {
  return [...command, "serve", "--address", `127.0.0.1:${port}`, "--data-dir", dataDir];
}

/**
 * Starts the product and signs its first user in. Removes the limit on an agent's logs, because an agent writes more here than it would in
 * practice.
 */
export async function startProduct(options: ProductOptions): Promise<Product> {
  mkdirSync(options.dataDir, { recursive: true });
  const port = await findFreePort();
  const server = await startServer({
    command: serveCommand(options.command, port, options.dataDir),
    env: {
      SLIPWAY_ADMIN_EMAIL: admin.email,
      SLIPWAY_ADMIN_USERNAME: admin.username,
      SLIPWAY_ADMIN_PASSWORD: admin.password,
      SLIPWAY_AGENT_LOG_LIMIT: String(2 ** 40),
      ...options.env,
    },
    port,
    readyPath: "/readyz",
    core: options.core,
    logFile: join(options.dataDir, "..", `product-${port}.log`),
  });
  const login = { email: admin.email, password: admin.password };
  const session = await requestJson<{ session_token: string }>(server.url, "", "POST", "/api/v2/users/login", login);
  return { ...server, adminToken: session.session_token, dataDir: options.dataDir };
}

/** Starts the product on data that `seed` has written while it was stopped. Also returns the result of `seed`. */
export async function startProductWith<T>(
  { setup }: Bench,
  seed: (store: LocalStore, now: number) => Promise<T>,
): Promise<[Product, T]> {
  const { productCommand: command, core, dir } = setup;
  if (!command) throw new Error("there is no product to measure");
  const dataDir = join(dir, `seeded-${crypto.randomUUID()}`);
  mkdirSync(dataDir);
  const options = { command, core, dataDir };
  await (await startProduct(options))[Symbol.asyncDispose]();
  const now = Date.now();
  const fatal = (error: Error): void => {
    throw error;
  };
  const store = openLocalStore({ directory: dataDir, cacheMb: 64, now, fatal });
  const seeded = await seed(store, now);
  await store.close();
  return [await startProduct(options), seeded];
}

/**
 * Creates `count` agents, `perWorkspace` of them in a workspace. Each workspace has its own template version, because the manifest
 * contains the tokens. `agentFields` are added to the manifest of each agent; `owner` is the token of the workspaces' owner. Resolves when
 * all builds have succeeded and every agent has a log source.
 */
export async function seedAgents(
  product: Pick<Product, "url" | "adminToken">,
  count: number,
  {
    perWorkspace = agentsPerWorkspace,
    agentFields = {},
    owner,
  }: { perWorkspace?: number; agentFields?: object; owner?: string | undefined } = {},
): Promise<SeededAgent[]> {
  const api = <T>(method: string, path: string, body?: unknown): Promise<T> =>
    requestJson<T>(product.url, product.adminToken, method, path, body);
  const [organization] = await api<{ id: string }[]>("GET", "/api/v2/users/me/organizations");
  if (!organization) throw new Error("the product has no organization");
  const suffix = Bun.randomUUIDv7().slice(-8);
  let templateId: string | undefined;
  const seeded: SeededAgent[] = [];
  while (seeded.length < count) {
    const names = Array.from({ length: Math.min(perWorkspace, count - seeded.length) }, (_, i) => `agent-${i}`);
    const tokens = new Map(names.map((name) => [name, crypto.randomUUID()]));
    const file = await api<{ hash: string }>("POST", "/api/v2/files", await createTemplateTar(tokens, agentFields));
    const version = await api<{ id: string }>("POST", `/api/v2/organizations/${organization.id}/templateversions`, {
      storage_method: "file",
      file_id: file.hash,
      provisioner: "echo",
      ...(templateId ? { template_id: templateId } : {}),
    });
    await awaitJob(() => api<{ job: Job }>("GET", `/api/v2/templateversions/${version.id}`));
    templateId ??= (
      await api<{ id: string }>("POST", `/api/v2/organizations/${organization.id}/templates`, {
        name: `bench-${suffix}`,
        template_version_id: version.id,
      })
    ).id;
    const token = owner ?? product.adminToken;
    const workspace = await requestJson<Workspace>(product.url, token, "POST", "/api/v2/users/me/workspaces", {
      name: `bench-${suffix}-${seeded.length}`,
      template_version_id: version.id,
    });
    const started = await awaitJob(async () => {
      const current = await api<Workspace>("GET", `/api/v2/workspaces/${workspace.id}`);
      return { ...current, job: current.latest_build.job };
    });
    for (const agent of started.latest_build.resources.flatMap((resource) => resource.agents ?? [])) {
      const token = tokens.get(agent.name);
      if (!token) continue;
      const logSourceId = crypto.randomUUID();
      const source = { id: logSourceId, display_name: "Bench", icon: "" };
      await requestJson(product.url, token, "POST", "/api/v2/workspaceagents/me/log-source", source);
      seeded.push({ agentId: agent.id, token, workspaceId: workspace.id, logSourceId });
    }
  }
  return seeded;
}

/** Returns the statements of `GET /workspaces/{id}`, taken from the product's own reader, so that they stay in sync. */
async function captureWorkspaceReads(
  database: string,
  workspaceId: string,
  accessUrl: URL,
): Promise<GetSample["queries"]> {
  using file = new Database(database, { readonly: true });
  const queries: GetSample["queries"] = [];
  const loadAll = async <T>(query: Query<T>): Promise<T[]> => {
    queries.push({
      sql: query.sql,
      params: query.params.filter((value) => typeof value !== "object" || value === null) as (string | number | null)[],
    });
    return file
      .query(query.sql)
      .values(...(query.params as never[]))
      .map((row) => query.map(row as Value[]));
  };
  const store = { all: loadAll, get: async <T>(query: Query<T>) => (await loadAll(query))[0] };
  const jobs = { position: () => ({ queue_position: 0, queue_size: 0 }), workersFor: () => [] };
  const config = { allow_workspace_renames: false };
  const tailnet = { coordinator: { nodeOf: () => undefined } };
  const encryption = openEncryption(dirname(database));
  const context = { store, jobs, clock: systemClock, config, tailnet, encryption, accessUrl } as unknown as ApiContext;
  await readWorkspace(context, workspaceId, { user_id: "", compat: false });
  return queries;
}

/** Records one `GET /workspaces/{id}` for the baseline: the statements, the database and the exact response. */
export async function recordWorkspaceRead(product: Product, workspaceId: string): Promise<GetSample> {
  const path = `/api/v2/workspaces/${workspaceId}`;
  const response = await fetch(product.url + path, { headers: { "Service-Session-Token": product.adminToken } });
  const body = await response.text();
  const perConnection = new Set(["connection", "content-length", "date", "keep-alive", "transfer-encoding"]);
  const headers = Object.fromEntries([...response.headers].filter(([name]) => !perConnection.has(name)));
  const database = join(product.dataDir, "slipway.db");
  return {
    database,
    queries: await captureWorkspaceReads(database, workspaceId, new URL(product.url)),
    path,
    status: response.status,
    headers,
    body,
  };
}

interface Job {
  status: string;
  error?: string;
}
interface Workspace {
  id: string;
  latest_build: { job: Job; resources: { agents?: { id: string; name: string }[] | null }[] };
}

/** Returns a template archive, as `src/schema/templates/manifest.ts` describes it. JSON is also YAML. */
async function createTemplateTar(tokens: Map<string, string>, agentFields: object): Promise<Uint8Array> {
  const agents = [...tokens].map(([name, token]) => ({ ...agentFields, name, token }));
  const groups = Math.ceil(agents.length / agentsPerResource);
  const resources = Array.from({ length: groups }, (_, index) => ({
    name: `group-${index}`,
    agents: agents.slice(index * agentsPerResource, (index + 1) * agentsPerResource),
  }));
  const manifest = JSON.stringify({ provisioner: "echo", resources });
  return new Bun.Archive({ "template.yaml": manifest }).bytes();
}

async function awaitJob<T extends { job: Job }>(loadJob: () => Promise<T>): Promise<T> {
  for (const deadline = performance.now() + 60_000; performance.now() < deadline; await Bun.sleep(20)) {
    const result = await loadJob();
    if (result.job.status === "succeeded") return result;
    if (result.job.status === "failed" || result.job.status === "canceled") throw new Error(`job: ${result.job.error}`);
  }
  throw new Error("a job did not end in 60 s");
}

async function requestJson<T>(url: string, token: string, method: string, path: string, body?: unknown): Promise<T> {
  const isArchive = body instanceof Uint8Array;
  const response = await fetch(url + path, {
    method,
    headers: {
      "content-type": isArchive ? "application/x-tar" : "application/json",
      ...(token ? { "Service-Session-Token": token } : {}),
    },
    body: body === undefined ? undefined : isArchive ? new Blob([body.slice()]) : JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as T;
}
