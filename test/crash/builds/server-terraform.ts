// A server, or its worker, is killed or stopped in each phase of a Terraform build, of an import and of a dry run. A phase is a failpoint
// in the code, a file that the template's own command creates before it waits, or a running command. Each build continues; the created
// resources match the state; no process or file is left behind, and no line, response or file contains a secret (rules TF-10, TF-11, TF-20,
// TF-37).
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
import { ServerPlace } from "../server.ts";
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

const PATIENCE = { patience: 120_000 };
const BRIEF = { ...PATIENCE, isBrief: true };

type Operation = "start" | "stop" | "delete" | "import" | "dry run";

/** One piece of work, and when its victim is killed, by exactly one of `at`, `runs`, `made` and `writes`. */
type Phase = {
  readonly name: string;
  readonly wish: Operation;
  /** The victim kills itself at this failpoint. */
  readonly at?: (typeof BUILD_FAILPOINTS)[number];
  /** When one of these Terraform commands is running. */
  readonly runs?: readonly string[];
  /** When a command of the template has created this file; it waits until the other one is removed. */
  readonly made?: readonly [made: string, waits: string];
  /** When Terraform has just written its state, in the middle of the apply. */
  readonly writes?: true;
  /** Terraform is killed together with its server or worker, as when a whole service is killed. */
  readonly withTerraform?: true;
};

/** Phases of one workspace, in this order. */
const BEGINNING: readonly Phase[] = [
  { name: "claimed", wish: "start", at: "build_claimed" },
  { name: "folder prepared", wish: "start", at: "build_prepared" },
  { name: "init", wish: "start", runs: ["init"] },
  { name: "plan", wish: "start", runs: ["plan"] },
  { name: "apply begun", wish: "start", made: ["first.begun", "first.wait"] },
  { name: "resource half made", wish: "start", made: ["second.begun", "second.wait"] },
  { name: "the same with Terraform", wish: "start", made: ["second.begun", "second.wait"], withTerraform: true },
  { name: "state written", wish: "start", writes: true },
];
const ENDING: readonly Phase[] = [
  { name: "after the apply", wish: "start", runs: ["graph", "show"] },
  { name: "state pushed", wish: "start", at: "build_pushed" },
  { name: "done reported", wish: "start", at: "build_done" },
  { name: "before forget", wish: "start", at: "build_forget" },
  { name: "import", wish: "import", runs: ["plan"] },
  { name: "dry run", wish: "dry run", runs: ["plan"] },
  { name: "stop", wish: "stop", made: ["second.ending", "second.hold"] },
  { name: "delete", wish: "delete", made: ["first.ending", "first.hold"] },
];
/** The short selection for CI. A start, a stop and a delete are each interrupted once; where the two victims differ, both are tested. */
const CI_PHASES = {
  server: ["init", "resource half made", "state pushed", "before forget", "delete"],
  worker: ["resource half made", "state pushed", "before forget", "stop"],
};

/** Each start recreates both parts, so that every apply has something to create and to remove. */
const toTemplate = (places: PhaseFolders): string => `terraform {
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
${toResource(places, "first", "")}
${toResource(places, "second", "count = data.coder_workspace.me.start_count\n  depends_on = [terraform_data.first]")}
`;

type PhaseFolders = { readonly parts: string; readonly gates: string };

const toResource = (
  { parts, gates }: PhaseFolders,
  name: string,
  more: string,
): string => `resource "terraform_data" "${name}" {
  ${more}
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

/** Returns the words and process of the command that runs in this folder. */
const readRunningCommand = (
  folder: string,
): { readonly words: readonly string[]; readonly pid: number } | undefined => {
  try {
    const { pid } = JSON.parse(readFileSync(join(folder, "running.json"), "utf8")) as { pid: number };
    return { pid, words: readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").slice(1, -1) };
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
  readonly places: PhaseFolders;
  readonly victim: Victim;
  /** Everything that server and worker have logged. */
  readonly logged: () => string;
  /** Folders of server and worker. */
  readonly folders: readonly string[];
  readonly random: () => number;
};

/** Resolves once the victim is dead, in the middle of the phase. */
const awaitDeath = async ({ at, runs, made, writes, withTerraform }: Phase, { victim, places, random }: Story) => {
  if (at) return victim.died();
  const state = (): number =>
    Math.max(
      0,
      ...listNames(join(victim.root, "builds")).map(
        (id) =>
          statSync(join(victim.root, "builds", id, "w/terraform.tfstate"), { throwIfNoEntry: false })?.mtimeMs ?? 0,
      ),
    );
  const findRunning = (names: readonly string[]) =>
    listCommands(victim.root).find(({ words }) => names.includes(words[0] ?? ""));
  if (runs) await until(() => findRunning(runs), BRIEF);
  if (made) await until(() => existsSync(join(places.gates, made[0])), PATIENCE);
  if (writes) {
    await until(() => findRunning(["apply"]), BRIEF);
    const before = state();
    await until(() => state() !== before, BRIEF);
  }
  if (made || writes) await Bun.sleep(random() * 60);
  const running = listCommands(victim.root);
  await victim.kill();
  if (withTerraform) for (const { pid } of running) process.kill(pid, "SIGKILL");
};

const ENDED = ["succeeded", "failed", "canceled"];

/** Starts the phase's work; returns its result and output once it has ended. */
const startWork = async ({ wish }: Phase, { client, template, places }: Story, id: string) => {
  type Job = { readonly status: string; readonly error?: string };
  const wait = <T extends object>(path: string, jobOf: (one: T) => Job): Promise<Job> =>
    until(async () => {
      // The server may be restarting.
      const seen = (await client.get(path as string).catch(() => undefined)) as T | undefined;
      const job = seen && jobOf(seen);
      return job && ENDED.includes(job.status) ? job : undefined;
    }, PATIENCE);
  if (wish === "import") {
    const body = { file_id: await uploadFiles(client, { "main.tf": toTemplate(places) }) };
    const version = await client.post<TemplateVersion>("/api/v2/organizations/default/templateversions", body);
    const path = `/api/v2/templateversions/${version.id}`;
    return { logs: `${path}/logs`, ended: () => wait(path, (one: TemplateVersion) => one.job) };
  }
  if (wish === "dry run") {
    const path = `/api/v2/templateversions/${template.active_version_id}/dry-run`;
    const run = await client.post<{ id: string }>(path, {});
    return { logs: `${path}/${run.id}/logs`, ended: () => wait(`${path}/${run.id}`, (one: Job) => one) };
  }
  const build = await createBuild(client, id, wish);
  const path = `/api/v2/workspacebuilds/${build.id}`;
  return { logs: `${path}/logs`, ended: () => wait(path, (one: Workspace["latest_build"]) => one.job) };
};

const listParts = (state: string): string[] =>
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
  const { client, places, victim, logged, folders } = story;
  const problems: string[] = [];
  const gone = until(() => ["builds", "imports"].every((kind) => listNames(join(victim.root, kind)).length === 0), {
    patience: 15_000,
  });
  await gone.catch(() =>
    problems.push(`a folder is left: ${["builds", "imports"].map((kind) => listNames(join(victim.root, kind)))}`),
  );
  const { latest_build } = await client.get<Workspace>(`/api/v2/workspaces/${id}?include_deleted=true`);
  const state = await (await client.fetch("GET", `/api/v2/workspacebuilds/${latest_build.id}/state`)).text();
  for (const secret of listSecrets(state)) secrets.add(secret);
  const due = phase.wish === "delete" ? "" : phase.wish === "stop" ? "first" : "first,second";
  const [there, known] = [listNames(places.parts).join(), listParts(state).join()];
  if (there !== known || there !== due)
    problems.push(`resources: ${there} exist, ${known} are in the state, ${due} are expected`);
  const texts: Record<string, string> = {
    "the log of the work": await (await client.fetch("GET", logs)).text(),
    "an answer": JSON.stringify(latest_build),
    "the log of server or worker": logged(),
  };
  for (const file of folders.flatMap(listFiles)) texts[file] = readText(file);
  for (const [place, text] of Object.entries(texts)) {
    if ([...secrets].some((secret) => text.includes(secret))) problems.push(`a secret is in ${place}`);
  }
  const left = [...findProcesses(victim.root), ...findProcesses(places.gates)];
  if (left.length > 0) problems.push(`${left.length} processes are still running`);
  return problems.map((words) => `${phase.name}: ${words}`);
};

/** One workspace with one kill in each phase. */
const round = async (story: Story, phases: readonly Phase[], name: string, log: CheckOptions["log"]) => {
  const { client, template, places, victim } = story;
  const problems: string[] = [];
  const secrets = new Set<string>();
  const { id, latest_build } = await createWorkspace(client, template.id, name);
  const first = await until(async () => {
    const { job } = await client.get<Workspace["latest_build"]>(`/api/v2/workspacebuilds/${latest_build.id}`);
    return ENDED.includes(job.status) && job;
  }, PATIENCE);
  if (first.status !== "succeeded") return [`the first build: ${first.error}`];
  for (const phase of phases) {
    const from = performance.now();
    for (const file of listNames(places.gates)) rmSync(join(places.gates, file));
    if (phase.made) writeFileSync(join(places.gates, phase.made[1]), "");
    if (phase.at) await victim.arm(phase.at);
    const work = await startWork(phase, story, id);
    await awaitDeath(phase, story);
    if (phase.made) rmSync(join(places.gates, phase.made[1]));
    await victim.revive();
    const job = await work.ended();
    if (job.status !== "succeeded") problems.push(`${phase.name}: ${job.status}, ${job.error}`);
    problems.push(...(await findProblems(phase, story, id, work.logs, secrets)));
    await victim.afterWork?.();
    log(`${name}, ${phase.name}: ${job.status} after ${Math.round(performance.now() - from)} ms`);
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

const createVictim = async (who: VictimKind, stage: Stage) => {
  if (who === "stopped worker") return makeUnresponsiveWorker(stage);
  if (who === "server") return makeServerVictim(stage);
  if (who === "stopped server") return makeUnresponsiveServer(stage);
  if (who === "paused server") return makePausedServer(stage);
  if (who === "paused worker") return makePausedWorker(stage);
  if (who === "paused program") return makePausedProgram(stage, listCommands);
  const worker = await makeWorkerVictim(stage);
  const { kill, revive } = makeUnresponsiveServer(stage);
  return who === "worker" ? worker : { ...worker, kill, revive };
};

/** Kills or stops it `rounds` times in each of these phases. Returns a one-line summary. */
const makeKillCheck =
  (who: VictimKind, phases: readonly Phase[]) =>
  async ({ rounds, seed, log }: CheckOptions): Promise<string> => {
    await using place = await ServerPlace.make();
    const places = { parts: join(place.scratch, "parts"), gates: join(place.scratch, "gates") };
    for (const folder of Object.values(places)) mkdirSync(folder);
    const more: Record<string, string> = who.endsWith("worker") ? { SLIPWAY_TERRAFORM_WORKERS: "true" } : {};
    const created = toTerraformOptions(join(place.scratch, "tools")).env ?? {};
    const env = { ...(created as Record<string, string>), ...ENV, ...more };
    await place.start({ env });
    const client = await place.client.signIn(ADMIN.email, ADMIN.password);
    await using victim = await createVictim(who, { place, env, client });
    const { template } = await makeTerraformTemplate(client, { "main.tf": toTemplate(places) }, "parts");
    const story: Story = {
      client,
      template,
      places,
      victim,
      random: randomFrom(seed),
      logged: () => place.errors + victim.logged(),
      folders: [place.directory, ...victim.directories],
    };
    for (let n = 1; n <= rounds; n++) {
      assertNoProblems(seed, `round ${n}`, await round(story, phases, `round-${n}`, log));
    }
    await place.stop();
    if (victim.directories.length === 0)
      assertNoProblems(
        seed,
        "the end",
        findProcesses(place.scratch).length === 0 ? [] : ["a process is still running"],
      );
    const what = who === "server" || who === "worker" ? `kills of the ${who}` : `times the ${who}`;
    return `${rounds} ${what} in each of ${phases.map(({ name }) => name).join(", ")}: all continued, the resources match the states, no process or file is left, no secret in a log, a response or a file`;
  };

const listCiPhases = (who: "server" | "worker"): readonly Phase[] =>
  [...BEGINNING, ...ENDING].filter(({ name }) => CI_PHASES[who].includes(name));
export const killServer = makeKillCheck("server", listCiPhases("server"));
export const killWorker = makeKillCheck("worker", listCiPhases("worker"));

/** Without phases that need a kill at a failpoint: a stopped process stops anywhere. */
const listStopPhases = (phases: readonly Phase[]): Phase[] =>
  phases.filter(({ at, withTerraform }) => !at && !withTerraform);

/** In the middle of an apply that creates resources, and of one that removes them. */
const isApply = ({ name }: Phase): boolean => name === "resource half made" || name === "stop";

export const checks: readonly Check[] = needs.terraform.found
  ? [
      ...(["server", "worker"] as const).flatMap((who) => [
        { name: `terraform: ${who} killed, beginning`, run: makeKillCheck(who, BEGINNING) },
        { name: `terraform: ${who} killed, ending`, run: makeKillCheck(who, ENDING) },
      ]),
      ...(["stopped server", "stopped server of a worker", "stopped worker"] as const).map((who) => ({
        name: `terraform: ${who}`,
        run: makeKillCheck(who, listStopPhases([...BEGINNING, ...ENDING])),
      })),
      ...PAUSED.map((who) => ({
        name: `terraform: ${who}`,
        run: makeKillCheck(who, [...BEGINNING, ...ENDING].filter(isApply)),
      })),
    ]
  : [];
