// A server, or its worker, is killed or stopped in each phase of a Terraform build, of an import and of a dry run. A phase is a failpoint
// in the code, a file that the template's command creates before it waits, or a running command. Each build continues, the created
// resources match the state, and no process or file is left behind. No log line, response or file contains a secret (rules TF-10, TF-11,
// TF-20, TF-37).
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { BUILD_FAILPOINTS } from "#base/failpoint.ts";
import type { TemplateVersion } from "#schema/templates/template-version.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import type { Client } from "#src/client.ts";
import { needs } from "#test/support/needs.ts";
import { randomFrom } from "#test/support/random.ts";
import { ADMIN } from "#test/support/server.ts";
import { uploadFiles } from "#test/support/templates.ts";
import { findProcesses, makeTerraformTemplate, toTerraformOptions } from "#test/support/terraform.ts";
import { until } from "#test/support/until.ts";
import { createBuild, createWorkspace } from "#test/support/workspaces.ts";
import { ServerSlot } from "../server.ts";
import { assertNoProblems } from "../server-crash.ts";
import type { Check, CheckOptions } from "../store/store-crash.ts";
import {
  makePausedProgram,
  makePausedServer,
  makePausedWorker,
  makeServerVictim,
  makeUnresponsiveServer,
  makeUnresponsiveWorker,
  makeWorkerVictim,
  type Stage,
  type Victim,
} from "./terraform-victims.ts";

const LONG_WAIT = { timeoutMs: 120_000 };
const BRIEF = { ...LONG_WAIT, isBrief: true };

type Operation = "start" | "stop" | "delete" | "import" | "dry run";

/** One operation, and when its victim is killed: by exactly one of `failpoint`, `commands`, `gate` and `isStateWritten`. */
type Phase = {
  readonly name: string;
  readonly operation: Operation;
  /** The victim kills itself at this failpoint. */
  readonly failpoint?: (typeof BUILD_FAILPOINTS)[number];
  /** The victim is killed while one of these Terraform commands runs. */
  readonly commands?: readonly string[];
  /** The victim is killed when a command of the template has created the first file. The command waits until the second file is removed. */
  readonly gate?: readonly [created: string, awaited: string];
  /** The victim is killed when Terraform has just written its state, in the middle of the apply. */
  readonly isStateWritten?: true;
  /** Terraform is killed together with its server or worker, as when a whole service is killed. */
  readonly withTerraform?: true;
};

/** The first phases of one workspace, in this order. */
const FIRST_PHASES: readonly Phase[] = [
  { name: "claimed", operation: "start", failpoint: "build_claimed" },
  { name: "folder prepared", operation: "start", failpoint: "build_prepared" },
  { name: "init", operation: "start", commands: ["init"] },
  { name: "plan", operation: "start", commands: ["plan"] },
  { name: "apply begun", operation: "start", gate: ["first.begun", "first.wait"] },
  { name: "resource half made", operation: "start", gate: ["second.begun", "second.wait"] },
  { name: "the same with Terraform", operation: "start", gate: ["second.begun", "second.wait"], withTerraform: true },
  { name: "state written", operation: "start", isStateWritten: true },
];
const LAST_PHASES: readonly Phase[] = [
  { name: "after the apply", operation: "start", commands: ["graph", "show"] },
  { name: "state pushed", operation: "start", failpoint: "build_pushed" },
  { name: "done reported", operation: "start", failpoint: "build_done" },
  { name: "before forget", operation: "start", failpoint: "build_forget" },
  { name: "import", operation: "import", commands: ["plan"] },
  { name: "dry run", operation: "dry run", commands: ["plan"] },
  { name: "stop", operation: "stop", gate: ["second.ending", "second.hold"] },
  { name: "delete", operation: "delete", gate: ["first.ending", "first.hold"] },
];
/**
 * The short selection for CI. A start, a stop and a delete are each interrupted once. Phases that differ for server and worker run for
 * both.
 */
const CI_PHASES = {
  server: ["init", "resource half made", "state pushed", "before forget", "delete"],
  worker: ["resource half made", "state pushed", "before forget", "stop"],
};

/** Each start recreates both resources, so that every apply has something to create and to remove. */
const toTemplate = (folders: PhaseFolders): string => `terraform {
  required_providers {
    coder = { source = "coder/coder" }
  }
}
data "coder_workspace" "me" {}
data "coder_workspace_owner" "me" {}
resource "coder_agent" "main" {
  os   = "linux"
  arch = "amd64"
}
${toResource(folders, "first", "")}
${toResource(folders, "second", "count = data.coder_workspace.me.start_count\n  depends_on = [terraform_data.first]")}
`;

type PhaseFolders = { readonly parts: string; readonly gates: string };

const toResource = (
  { parts, gates }: PhaseFolders,
  name: string,
  settings: string,
): string => `resource "terraform_data" "${name}" {
  ${settings}
  input            = "${parts}/${name}"
  triggers_replace = [timestamp()]
  provisioner "local-exec" {
    command     = "touch ${gates}/${name}.begun; while [ -e ${gates}/${name}.wait ]; do sleep 0.02; done; echo \\"$SESSION $TOKEN\\"; echo \\"$SESSION\\" | base64; echo made > \${self.input}"
    environment = {
      SESSION = data.coder_workspace_owner.me.session_token
      TOKEN   = nonsensitive(coder_agent.main.token)
    }
  }
  provisioner "local-exec" {
    when    = destroy
    command = "touch ${gates}/${name}.ending; while [ -e ${gates}/${name}.hold ]; do sleep 0.02; done; rm -f \${self.input}"
  }
}`;

/** Returns the arguments and the process ID of the command that runs in this folder. */
const readRunningCommand = (folder: string): { readonly args: readonly string[]; readonly pid: number } | undefined => {
  try {
    const { pid } = JSON.parse(readFileSync(join(folder, "running.json"), "utf8")) as { pid: number };
    return { pid, args: readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").slice(1, -1) };
  } catch {
    return undefined;
  }
};

const listNames = (folder: string): string[] => (existsSync(folder) ? readdirSync(folder).sort() : []);

/** Returns the commands that run below this folder of a server or worker. */
const listCommands = (root: string) =>
  ["builds", "imports"].flatMap((kind) =>
    listNames(join(root, kind)).flatMap((name) => readRunningCommand(join(root, kind, name)) ?? []),
  );

type Story = {
  readonly client: Client;
  readonly template: { readonly id: string; readonly active_version_id: string };
  readonly phaseFolders: PhaseFolders;
  readonly victim: Victim;
  /** Everything that the server and the worker have logged. */
  readonly getLogs: () => string;
  /** The folders of the server and the worker. */
  readonly folders: readonly string[];
  readonly random: () => number;
};

/** Resolves once the victim has died in the middle of the phase. */
const awaitDeath = async (
  { failpoint, commands, gate, isStateWritten, withTerraform }: Phase,
  { victim, phaseFolders, random }: Story,
) => {
  if (failpoint) return victim.awaitExit();
  const stateTime = (): number =>
    Math.max(
      0,
      ...listNames(join(victim.root, "builds")).map(
        (id) =>
          statSync(join(victim.root, "builds", id, "w/terraform.tfstate"), { throwIfNoEntry: false })?.mtimeMs ?? 0,
      ),
    );
  const findRunning = (names: readonly string[]) =>
    listCommands(victim.root).find(({ args }) => names.includes(args[0] ?? ""));
  if (commands) await until(() => findRunning(commands), BRIEF);
  if (gate) await until(() => existsSync(join(phaseFolders.gates, gate[0])), LONG_WAIT);
  if (isStateWritten) {
    await until(() => findRunning(["apply"]), BRIEF);
    const stateTimeBefore = stateTime();
    await until(() => stateTime() !== stateTimeBefore, BRIEF);
  }
  if (gate || isStateWritten) await Bun.sleep(random() * 60);
  const running = listCommands(victim.root);
  await victim.kill();
  if (withTerraform) for (const { pid } of running) process.kill(pid, "SIGKILL");
};

const FINAL_STATUSES = ["succeeded", "failed", "canceled"];

/** Starts the phase's operation. Returns the path of its logs, and a function that resolves with its job once the job has ended. */
const startWork = async ({ operation }: Phase, { client, template, phaseFolders }: Story, id: string) => {
  type Job = { readonly status: string; readonly error?: string };
  const awaitJob = <T extends object>(path: string, jobOf: (response: T) => Job): Promise<Job> =>
    until(async () => {
      // The server may be restarting.
      const response = (await client.get(path as string).catch(() => undefined)) as T | undefined;
      const job = response && jobOf(response);
      return job && FINAL_STATUSES.includes(job.status) ? job : undefined;
    }, LONG_WAIT);
  if (operation === "import") {
    const body = { file_id: await uploadFiles(client, { "main.tf": toTemplate(phaseFolders) }) };
    const version = await client.post<TemplateVersion>("/api/v2/organizations/default/templateversions", body);
    const path = `/api/v2/templateversions/${version.id}`;
    return { logs: `${path}/logs`, waitForEnd: () => awaitJob(path, (version: TemplateVersion) => version.job) };
  }
  if (operation === "dry run") {
    const path = `/api/v2/templateversions/${template.active_version_id}/dry-run`;
    const run = await client.post<{ id: string }>(path, {});
    return { logs: `${path}/${run.id}/logs`, waitForEnd: () => awaitJob(`${path}/${run.id}`, (job: Job) => job) };
  }
  const build = await createBuild(client, id, operation);
  const path = `/api/v2/workspacebuilds/${build.id}`;
  return { logs: `${path}/logs`, waitForEnd: () => awaitJob(path, (build: Workspace["latest_build"]) => build.job) };
};

const listResourcesInState = (state: string): string[] =>
  (JSON.parse(state || "{}") as { resources?: { type: string; name: string; instances: unknown[] }[] }).resources
    ?.filter(({ type, instances }) => type === "terraform_data" && instances.length > 0)
    .map(({ name }) => name)
    .sort() ?? [];

/** Returns session tokens and agent tokens, also base64-encoded. */
const listSecrets = (state: string): string[] =>
  [...state.matchAll(/"(?:session_token|token)": "([^"]{8,})"/g)].flatMap(([, secret = ""]) => [
    secret,
    btoa(secret).slice(0, 40),
  ]);

const listFiles = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => !path.includes("/plugins/") && !path.includes("/providers/"))
    .map((path) => join(folder, path))
    .filter((path) => statSync(path, { throwIfNoEntry: false })?.isFile());

const readText = (file: string): string => {
  try {
    return readFileSync(file, "latin1");
  } catch {
    // The process has just ended.
    return "";
  }
};

/** Returns the problems that a phase leaves once its work has ended. */
const findProblems = async (phase: Phase, story: Story, id: string, logs: string, secrets: Set<string>) => {
  const { client, phaseFolders, victim, getLogs, folders } = story;
  const problems: string[] = [];
  const foldersRemoved = until(
    () => ["builds", "imports"].every((kind) => listNames(join(victim.root, kind)).length === 0),
    {
      timeoutMs: 15_000,
    },
  );
  await foldersRemoved.catch(() =>
    problems.push(`a folder still exists: ${["builds", "imports"].map((kind) => listNames(join(victim.root, kind)))}`),
  );
  const { latest_build } = await client.get<Workspace>(`/api/v2/workspaces/${id}?include_deleted=true`);
  const state = await (await client.fetch("GET", `/api/v2/workspacebuilds/${latest_build.id}/state`)).text();
  for (const secret of listSecrets(state)) secrets.add(secret);
  const expected = phase.operation === "delete" ? "" : phase.operation === "stop" ? "first" : "first,second";
  const [existing, inState] = [listNames(phaseFolders.parts).join(), listResourcesInState(state).join()];
  if (existing !== inState || existing !== expected)
    problems.push(`resources: ${existing} exist, ${inState} are in the state, ${expected} are expected`);
  const texts: Record<string, string> = {
    "the log of the operation": await (await client.fetch("GET", logs)).text(),
    "a response": JSON.stringify(latest_build),
    "the log of the server or the worker": getLogs(),
  };
  for (const file of folders.flatMap(listFiles)) texts[file] = readText(file);
  for (const [source, text] of Object.entries(texts)) {
    if ([...secrets].some((secret) => text.includes(secret))) problems.push(`a secret is in ${source}`);
  }
  const running = [...findProcesses(victim.root), ...findProcesses(phaseFolders.gates)];
  if (running.length > 0) problems.push(`${running.length} processes are still running`);
  return problems.map((problem) => `${phase.name}: ${problem}`);
};

/** Creates a workspace and kills the victim once in each phase. */
const runPhases = async (story: Story, phases: readonly Phase[], name: string, log: CheckOptions["log"]) => {
  const { client, template, phaseFolders, victim } = story;
  const problems: string[] = [];
  const secrets = new Set<string>();
  const { id, latest_build } = await createWorkspace(client, template.id, name);
  const firstJob = await until(async () => {
    const { job } = await client.get<Workspace["latest_build"]>(`/api/v2/workspacebuilds/${latest_build.id}`);
    return FINAL_STATUSES.includes(job.status) && job;
  }, LONG_WAIT);
  if (firstJob.status !== "succeeded") return [`the first build: ${firstJob.error}`];
  for (const phase of phases) {
    const startedAt = performance.now();
    for (const file of listNames(phaseFolders.gates)) rmSync(join(phaseFolders.gates, file));
    if (phase.gate) writeFileSync(join(phaseFolders.gates, phase.gate[1]), "");
    if (phase.failpoint) await victim.arm(phase.failpoint);
    const work = await startWork(phase, story, id);
    await awaitDeath(phase, story);
    if (phase.gate) rmSync(join(phaseFolders.gates, phase.gate[1]));
    await victim.revive();
    const job = await work.waitForEnd();
    if (job.status !== "succeeded") problems.push(`${phase.name}: ${job.status}, ${job.error}`);
    problems.push(...(await findProblems(phase, story, id, work.logs, secrets)));
    await victim.afterWork?.();
    log(`${name}, ${phase.name}: ${job.status} after ${Math.round(performance.now() - startedAt)} ms`);
  }
  return problems;
};

const ENV = { SLIPWAY_PROVISIONER_SLOTS: "2", SLIPWAY_LOG_LEVEL: "debug" };

const PAUSED = ["paused server", "paused worker", "paused program"] as const;
type VictimKind =
  | "server"
  | "worker"
  | "stopped server"
  | "stopped server of a worker"
  | "stopped worker"
  | (typeof PAUSED)[number];

const createVictim = async (kind: VictimKind, stage: Stage) => {
  if (kind === "stopped worker") return makeUnresponsiveWorker(stage);
  if (kind === "server") return makeServerVictim(stage);
  if (kind === "stopped server") return makeUnresponsiveServer(stage);
  if (kind === "paused server") return makePausedServer(stage);
  if (kind === "paused worker") return makePausedWorker(stage);
  if (kind === "paused program") return makePausedProgram(stage, listCommands);
  const worker = await makeWorkerVictim(stage);
  const { kill, revive } = makeUnresponsiveServer(stage);
  return kind === "worker" ? worker : { ...worker, kill, revive };
};

/** Returns a check that kills or stops the victim `rounds` times in each of these phases, and returns a one-line summary. */
const makeKillCheck =
  (kind: VictimKind, phases: readonly Phase[]) =>
  async ({ rounds, seed, log }: CheckOptions): Promise<string> => {
    await using place = await ServerSlot.make();
    const phaseFolders = { parts: join(place.scratch, "parts"), gates: join(place.scratch, "gates") };
    for (const folder of Object.values(phaseFolders)) mkdirSync(folder);
    const workerEnv: Record<string, string> = kind.endsWith("worker") ? { SLIPWAY_TERRAFORM_WORKERS: "true" } : {};
    const terraformEnv = toTerraformOptions(join(place.scratch, "tools")).env ?? {};
    const env = { ...(terraformEnv as Record<string, string>), ...ENV, ...workerEnv };
    await place.start({ env });
    const client = await place.client.signIn(ADMIN.email, ADMIN.password);
    await using victim = await createVictim(kind, { place, env, client });
    const { template } = await makeTerraformTemplate(client, { "main.tf": toTemplate(phaseFolders) }, "parts");
    const story: Story = {
      client,
      template,
      phaseFolders,
      victim,
      random: randomFrom(seed),
      getLogs: () => place.errors + victim.getLogs(),
      folders: [place.directory, ...victim.directories],
    };
    for (let n = 1; n <= rounds; n++) {
      assertNoProblems(seed, `round ${n}`, await runPhases(story, phases, `round-${n}`, log));
    }
    await place.stop();
    if (victim.directories.length === 0)
      assertNoProblems(
        seed,
        "the end",
        findProcesses(place.scratch).length === 0 ? [] : ["a process is still running"],
      );
    const action = kind === "server" || kind === "worker" ? `kills of the ${kind}` : `times the ${kind}`;
    return `${rounds} ${action} in each of ${phases.map(({ name }) => name).join(", ")}: all continued, the resources match the states, no process or file is left, no secret in a log, a response or a file`;
  };

const listCiPhases = (kind: "server" | "worker"): readonly Phase[] =>
  [...FIRST_PHASES, ...LAST_PHASES].filter(({ name }) => CI_PHASES[kind].includes(name));
export const killServer = makeKillCheck("server", listCiPhases("server"));
export const killWorker = makeKillCheck("worker", listCiPhases("worker"));

/** Returns the phases that do not need a kill at a failpoint: a paused process can be in any part of its code. */
const listStopPhases = (phases: readonly Phase[]): Phase[] =>
  phases.filter(({ failpoint, withTerraform }) => !failpoint && !withTerraform);

/** Returns true in the middle of an apply that creates resources, or of one that removes them. */
const isApply = ({ name }: Phase): boolean => name === "resource half made" || name === "stop";

export const checks: readonly Check[] = needs.terraform.found
  ? [
      ...(["server", "worker"] as const).flatMap((kind) => [
        { name: `terraform: ${kind} killed, beginning`, run: makeKillCheck(kind, FIRST_PHASES) },
        { name: `terraform: ${kind} killed, ending`, run: makeKillCheck(kind, LAST_PHASES) },
      ]),
      ...(["stopped server", "stopped server of a worker", "stopped worker"] as const).map((kind) => ({
        name: `terraform: ${kind}`,
        run: makeKillCheck(kind, listStopPhases([...FIRST_PHASES, ...LAST_PHASES])),
      })),
      ...PAUSED.map((kind) => ({
        name: `terraform: ${kind}`,
        run: makeKillCheck(kind, [...FIRST_PHASES, ...LAST_PHASES].filter(isApply)),
      })),
    ]
  : [];
