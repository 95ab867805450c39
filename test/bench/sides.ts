// The two sides of every comparison behind one interface: the floor (a minimal server, floor.ts) and the product. Each starts on an empty
// directory.

import { Database } from "bun:sqlite";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { PlanLine } from "./driver.ts";
import type { GetSample } from "./floor.ts";
import { findFreePort } from "./machine.ts";
import { startServer } from "./process.ts";
import { recordWorkspaceRead, seedAgents, startProduct } from "./product.ts";

export type SideName = "floor" | "product";

/** A running server with its agents, described for the driver. */
export interface Target extends AsyncDisposable {
  side: SideName;
  port: number;
  pid: number;
  /** Returns the plan line of a PATCH connection of an agent, by index. */
  patch(agent: number): PlanLine;
  follow(agent: number): PlanLine;
  /** Returns the plan line for fan-out: Bun's publish without storing on the floor, the ordinary PATCH on the product. */
  publish(agent: number): PlanLine;
  /** Returns the plan line of an unrelated small read. */
  probe(): PlanLine;
  /** Returns the plan line that reads one workspace; on the floor, it replays a recorded response. */
  get(): PlanLine;
}

export interface SideOptions {
  agents: number;
  /** Only for the floor: the file with a GetSample to replay. */
  sample?: string;
  /** Only for the product: settings. */
  env?: Record<string, string>;
}

/** The settings that both sides share. */
export interface BenchSetup {
  /** The parent of all data directories. */
  dir: string;
  /** The processor core that servers are pinned to. */
  core: number | undefined;
  /** Undefined if there is no product to measure. */
  productCommand: string[] | undefined;
}

let folderCount = 0;

function createDir(setup: BenchSetup, name: string): string {
  const dir = join(setup.dir, `${name}-${++folderCount}`);
  mkdirSync(dir, { recursive: true });
  return dir;
}

export function startSide(setup: BenchSetup, side: SideName, options: SideOptions): Promise<Target> {
  return side === "floor" ? startFloor(setup, options) : startProductSide(setup, options);
}

async function startFloor(setup: BenchSetup, options: SideOptions): Promise<Target> {
  const port = await findFreePort();
  const dir = createDir(setup, "floor");
  const program = join(import.meta.dir, "floor.ts");
  const server = await startServer({
    command: [process.execPath, program, String(port), dir, ...(options.sample ? [options.sample] : [])],
    env: {},
    port,
    readyPath: "/probe",
    core: setup.core,
    logFile: join(dir, "floor.log"),
  });
  const source = "7c2f6a1e-3b0d-4c55-9a57-0a5f1e6b2c11";
  return {
    ...server,
    side: "floor",
    patch: (agent) => ({ kind: "patch", agent, path: "/api/v2/workspaceagents/me/logs", token: `${agent}`, source }),
    publish: (agent) => ({ kind: "patch", agent, path: "/publish", token: `${agent}`, source }),
    follow: (agent) => ({ kind: "follow", agent, path: `/api/v2/workspaceagents/${agent}/logs`, token: "none" }),
    probe: () => ({ kind: "probe", path: "/probe", token: "none" }),
    get: () => ({ kind: "get", path: "/sample", token: "none" }),
  };
}

async function startProductSide(setup: BenchSetup, options: SideOptions): Promise<Target> {
  if (!setup.productCommand) throw new Error("there is no product to start");
  const dataDir = createDir(setup, "product");
  const product = await startProduct({
    command: setup.productCommand,
    dataDir,
    core: setup.core,
    ...(options.env ? { env: options.env } : {}),
  });
  const agents = await seedAgents(product, options.agents);
  const [reader] = await seedAgents(product, 1); // a small workspace of its own for the reads
  const getAgent = (agent: number) => {
    const found = agents[agent];
    if (!found) throw new Error(`agent ${agent} was not seeded`);
    return found;
  };
  const token = product.adminToken;
  const workspacePath = `/api/v2/workspaces/${reader?.workspaceId}`;
  const patch = (agent: number): PlanLine => {
    const { token, logSourceId } = getAgent(agent);
    return { kind: "patch", agent, path: "/api/v2/workspaceagents/me/logs", token, source: logSourceId };
  };
  const query = "follow=true&no_compression&after=0";
  return {
    ...product,
    side: "product",
    patch,
    publish: patch,
    follow: (agent) => ({
      kind: "follow",
      agent,
      path: `/api/v2/workspaceagents/${getAgent(agent).agentId}/logs?${query}`,
      token,
    }),
    probe: () => ({ kind: "probe", path: workspacePath, token }),
    get: () => ({ kind: "get", path: workspacePath, token }),
  };
}

/** Writes the sample that the floor replays: recorded from the product, or synthetic without a product. Returns the file. */
export async function writeSample(setup: BenchSetup): Promise<string> {
  const file = join(setup.dir, "get-sample.json");
  await Bun.write(file, JSON.stringify(setup.productCommand ? await recordSample(setup) : makeSample(setup)));
  return file;
}

async function recordSample(setup: BenchSetup): Promise<GetSample> {
  if (!setup.productCommand) throw new Error("there is no product to record");
  const dataDir = createDir(setup, "sample");
  await using product = await startProduct({ command: setup.productCommand, dataDir, core: setup.core });
  const [agent] = await seedAgents(product, 1);
  if (!agent) throw new Error("no agent was seeded");
  return await recordWorkspaceRead(product, agent.workspaceId);
}

function makeSample(setup: BenchSetup): GetSample {
  const database = join(createDir(setup, "sample"), "sample.db");
  using db = new Database(database);
  db.run("pragma journal_mode=wal"); // as the product's: a rollback journal costs several system calls for each read
  const names = Array.from({ length: 24 }, (_, index) => `c${index}`);
  db.run(`create table workspaces(id text primary key, ${names.map((name) => `${name} text`).join(", ")})`);
  const insert = db.prepare(`insert into workspaces values(?${",?".repeat(names.length)})`);
  const ids = Array.from({ length: 1000 }, () => crypto.randomUUID());
  for (const id of ids) insert.run(id, ...names.map((name) => `${name} of ${id}`));
  const id = ids[500] ?? "";
  const row = Object.fromEntries(names.map((name) => [name, `${name} of ${id}`]));
  const body = JSON.stringify({ id, ...row, latest_build: row });
  const queries = [{ sql: "select * from workspaces where id = ?", params: [id] }];
  const headers = { "content-type": "application/json" };
  return { database, queries, path: `/api/v2/workspaces/${id}`, status: 200, headers, body };
}
