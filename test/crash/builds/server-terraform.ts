// A server, or a worker of it, is killed in each phase of builds of a Terraform template: init, plan, apply, while a state is written, after
// the apply and before its end is stored, in a stop, in a delete. Each build goes on; what the template has made and what its state says are
// the same; nothing runs on afterwards, and no secret is in any line (rules TF-10, TF-11, TF-20).
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import type { Client } from "#src/client.ts";
import { needs } from "#test/support/needs.ts";
import { randomFrom } from "#test/support/random.ts";
import { ADMIN } from "#test/support/server.ts";
import { makeTerraformTemplate, processesWith, terraformServer } from "#test/support/terraform.ts";
import { until } from "#test/support/until.ts";
import { makeKey, startWorker, type WorkerProcess } from "#test/support/worker.ts";
import { createBuild, createWorkspace } from "#test/support/workspaces.ts";
import { ServerPlace } from "../server.ts";
import { mustBeRight } from "../server-crash.ts";
import type { Check, CheckOptions } from "../store/store-crash.ts";

/** One build each, in this order on one workspace. */
const PHASES = ["init", "plan", "apply", "state write", "after apply", "stop", "destroy"] as const;
type Phase = (typeof PHASES)[number];
const TRANSITIONS: Partial<Record<Phase, string>> = { stop: "stop", destroy: "delete" };

const PATIENCE = { patience: 300_000 };

/** Each start makes both parts anew, so that every apply has something to make and to remove. */
const main = (parts: string): string => `terraform {
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
${part(parts, "first", "")}
${part(parts, "second", "count = data.coder_workspace.me.start_count\n  depends_on = [terraform_data.first]")}
`;

const part = (parts: string, name: string, more: string): string => `resource "terraform_data" "${name}" {
  ${more}
  input            = "${parts}/${name}"
  triggers_replace = [timestamp()]
  provisioner "local-exec" {
    command     = "sleep 0.1; echo \\"$SESSION $TOKEN\\"; echo made > \${self.input}"
    environment = {
      SESSION = data.coder_workspace_owner.me.session_token
      TOKEN   = nonsensitive(coder_agent.main.token)
    }
  }
  provisioner "local-exec" {
    when    = destroy
    command = "sleep 0.1; rm -f \${self.input}"
  }
}`;

/** The command that runs in this folder of a build, as its words. */
const commandIn = (folder: string): string[] => {
  try {
    const { pid } = JSON.parse(readFileSync(join(folder, "running.json"), "utf8")) as { pid: number };
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").slice(1, -1);
  } catch {
    return [];
  }
};

/** Resolves in the middle of the phase of the build whose folder this is. */
const inPhase = async (phase: Phase, folder: string): Promise<void> => {
  const state = join(folder, "w", "terraform.tfstate");
  const written = (): number => statSync(state, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const begins = (name: string): Promise<unknown> => until(() => commandIn(folder)[0] === name, PATIENCE);
  if (phase === "init" || phase === "plan") return void (await begins(phase));
  await begins("apply");
  const before = written();
  if (phase === "state write") await until(() => written() !== before, PATIENCE);
  if (phase === "after apply") await until(() => ["graph", "show"].includes(commandIn(folder)[0] ?? ""), PATIENCE);
};

/** Who is killed and comes back. */
type Victim = {
  readonly kill: () => Promise<void>;
  readonly revive: () => Promise<void>;
  /** Where its builds have their folders. */
  readonly builds: string;
  /** What it has logged. */
  readonly said: () => string;
};

const settled = async (client: Client, id: string): Promise<Workspace> =>
  until(async () => {
    // It may be the server that is coming back.
    const seen = await client.get<Workspace>(`/api/v2/workspaces/${id}?include_deleted=true`).catch(() => undefined);
    return seen && !["pending", "running", "canceling"].includes(seen.latest_build.job.status) ? seen : undefined;
  }, PATIENCE);

type Story = { readonly client: Client; readonly template_id: string; readonly parts: string; readonly victim: Victim };

const namesIn = (state: string): string[] =>
  (JSON.parse(state || "{}") as { resources?: { type: string; name: string; instances: unknown[] }[] }).resources
    ?.filter(({ type, instances }) => type === "terraform_data" && instances.length > 0)
    .map(({ name }) => name)
    .sort() ?? [];

const secretsIn = (state: string): string[] =>
  [...state.matchAll(/"(?:session_token|token)": "([^"]{8,})"/g)].map(([, secret = ""]) => secret);

/** One workspace with one kill in each phase. */
const round = async (story: Story, name: string, random: () => number): Promise<string[]> => {
  const { client, template_id, parts, victim } = story;
  const wrong: string[] = [];
  const secrets = new Set<string>();
  let id = "";
  for (const phase of PHASES) {
    const wish = TRANSITIONS[phase] ?? "start";
    if (id === "") ({ id } = await createWorkspace(client, template_id, name));
    else await createBuild(client, id, wish);
    await inPhase(phase, join(victim.builds, id));
    await Bun.sleep(random() * 60);
    await victim.kill();
    await victim.revive();
    const { latest_build } = await settled(client, id);
    if (latest_build.job.status !== "succeeded")
      wrong.push(`${phase}: ${latest_build.job.status}, ${latest_build.job.error}`);
    const state = await (await client.fetch("GET", `/api/v2/workspacebuilds/${latest_build.id}/state`)).text();
    for (const secret of secretsIn(state)) secrets.add(secret);
    const [there, known] = [readdirSync(parts).sort().join(), namesIn(state).join()];
    const due = phase === "destroy" ? "" : phase === "stop" ? "first" : "first,second";
    if (there !== known || there !== due)
      wrong.push(`${phase}: there are ${there}, the state knows ${known}, due are ${due}`);
    const logs = await (await client.fetch("GET", `/api/v2/workspacebuilds/${latest_build.id}/logs`)).text();
    const said = logs + victim.said();
    if ([...secrets].some((secret) => said.includes(secret))) wrong.push(`${phase}: a secret is in a log`);
    const left = processesWith(join(victim.builds, id));
    if (left.length > 0) wrong.push(`${phase}: ${left.length} processes run on`);
    // A worker hears that its state is stored a moment after everybody else sees that the build has ended.
    const goes = until(() => !existsSync(join(victim.builds, id)), { patience: 10_000 });
    if (!(await goes.catch(() => false))) wrong.push(`${phase}: the folder of the build is left`);
  }
  return wrong;
};

const ENV = { SLIPWAY_PROVISIONER_SLOTS: "2" };

type Stage = { readonly place: ServerPlace; readonly env: Record<string, string>; readonly client: Client };

const serverVictim = ({ place, env }: Stage): Victim => ({
  builds: join(place.directory, "terraform", "builds"),
  said: () => place.newest.errors,
  kill: async () => {
    place.newest.kill("SIGKILL");
    await place.newest.ended;
  },
  revive: async () => {
    await place.start({ env });
  },
});

const workerVictim = async ({ place, client }: Stage): Promise<Victim & AsyncDisposable> => {
  const { key } = await makeKey(client);
  const directory = join(place.scratch, "worker");
  mkdirSync(directory, { recursive: true });
  const env = { SLIPWAY_WORKER_TERRAFORM_CLI_CONFIG: join(needs.terraform.file, "rc") };
  const start = (): WorkerProcess =>
    startWorker({ url: new URL(client.url), key, name: "victim", directory, kinds: "terraform", env });
  let worker = start();
  await worker.connected();
  return {
    builds: join(directory, "terraform", "builds"),
    said: () => worker.errors(),
    kill: async () => {
      worker.signal("SIGKILL");
      await worker.exited;
    },
    revive: async () => {
      worker = start();
      await worker.connected();
    },
    [Symbol.asyncDispose]: () => worker[Symbol.asyncDispose](),
  };
};

/** Kills `rounds` times in each phase. Returns what was seen, in one line. */
const terraformKills =
  (who: "server" | "worker") =>
  async ({ rounds, seed, log }: CheckOptions): Promise<string> => {
    await using place = await ServerPlace.make();
    const random = randomFrom(seed);
    const parts = join(place.scratch, "parts");
    mkdirSync(parts);
    const more: Record<string, string> = who === "worker" ? { SLIPWAY_TERRAFORM_WORKERS: "true" } : {};
    const made = terraformServer(join(place.scratch, "tools")).env ?? {};
    const env = { ...ENV, ...(made as Record<string, string>), ...more };
    await place.start({ env });
    const client = await place.client.signIn(ADMIN.email, ADMIN.password);
    const stage = { place, env, client };
    await using worker = who === "worker" ? await workerVictim(stage) : undefined;
    const victim = worker ?? serverVictim(stage);
    const { template } = await makeTerraformTemplate(client, { "main.tf": main(parts) }, "parts");
    for (let n = 1; n <= rounds; n++) {
      const wrong = await round({ client, template_id: template.id, parts, victim }, `round-${n}`, random);
      mustBeRight(seed, `round ${n}`, wrong);
      log(`round ${n}: ${PHASES.length} kills`);
    }
    await place.stop();
    mustBeRight(seed, "the end", processesWith(place.scratch).length === 0 || worker ? [] : ["something runs on"]);
    return `${rounds} kills of the ${who} in each of ${PHASES.join(", ")}: every build went on, its parts are those of its state, nothing left running, no secret in a log`;
  };

export const killServer = terraformKills("server");
export const killWorker = terraformKills("worker");

export const checks: readonly Check[] = needs.terraform.found
  ? [
      { name: "terraform: server killed", run: killServer },
      { name: "terraform: worker killed", run: killWorker },
    ]
  : [];
