// The daemon of a workspace is killed during operations on the workspace's files, both as a process of this machine and in a container: the
// operation ends as usual, and the daemon is replaced.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "#base/clock.ts";
import type { Chat } from "#schema/chats/chat.ts";
import type { Trial } from "#schema/chats/trial.ts";
import type { Fork } from "#schema/workspaces/fork.ts";
import type { HomeBackup } from "#schema/workspaces/home-backup.ts";
import type { Snapshot } from "#schema/workspaces/snapshot.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import type { Client } from "#src/client.ts";
import { Engine } from "#src/provisioners/docker/engine.ts";
import { BINARY, findAgent, IMAGE, runInTerminal } from "#test/support/docker/docker-world.ts";
import { addWritingModel, startWritingModel } from "#test/support/models/writing-model.ts";
import { compiled, needs } from "#test/support/needs.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";
import { ServerSlot } from "../server.ts";
import { signInAdmin } from "../server-world.ts";
import type { Check, CheckOptions } from "../store/store-crash.ts";

/** A provisioner of workspaces, and how to find their daemons. */
type Kind = {
  readonly template: string;
  readonly env: Readonly<Record<string, string>>;
  /** Returns the daemon's process, or undefined if it does not run. */
  readonly daemon: (place: ServerSlot, id: string) => Promise<number | undefined>;
  /** Returns true if the workspace is currently paused. */
  readonly isFrozen: (place: ServerSlot, id: string) => Promise<boolean>;
};

const readProcessState = (pid: number | undefined): string => {
  try {
    return /\) (\w) /.exec(readFileSync(`/proc/${pid}/stat`, "utf8"))?.[1] ?? "";
  } catch {
    return "";
  }
};

const LOCAL: Kind = {
  template: "provisioner: local\nresources: [{name: main, agents: [{name: main}]}]\n",
  env: { SLIPWAY_CHAT_TITLES: "false" },
  daemon: async ({ directory }, id) => {
    try {
      const { pid } = JSON.parse(readFileSync(join(directory, "workspaces", id, "daemon.json"), "utf8"));
      return readProcessState(pid) === "" ? undefined : pid;
    } catch {
      return undefined;
    }
  },
  isFrozen: async (place, id) => readProcessState(await LOCAL.daemon(place, id)) === "T",
};

const engine = new Engine(needs.docker.file || "unix:///nowhere/docker.sock", systemClock);
const findContainer = async (id: string) => {
  const query = { all: "true", filters: JSON.stringify({ label: [`slipway.workspace_id=${id}`] }) };
  return (await engine.json<{ Id: string; State: string }[]>("list", "GET", "/containers/json", { query }))?.[0];
};

const DOCKER: Kind = {
  template: `
provisioner: docker
resources:
  - name: dev
    docker: {image: "${IMAGE}", pull: never, stop_grace: 0, volumes: [{name: home, path: /home/dev}]}
    agents: [{name: main}]
`,
  env: {
    SLIPWAY_DOCKER_HOST: needs.docker.file,
    SLIPWAY_AGENT_BINARY: BINARY,
    SLIPWAY_CHAT_TITLES: "false",
    SLIPWAY_MODEL_HOSTS: "127.0.0.1",
  },
  daemon: async (_, id) => {
    const container = await findContainer(id);
    if (!container || !["running", "paused"].includes(container.State)) return undefined;
    type Top = { Titles: string[]; Processes: string[][] };
    const top = await engine.json<Top>("top", "GET", `/containers/${container.Id}/top`, {
      expectedStatuses: [409, 500],
    });
    const pidColumn = top?.Titles.indexOf("PID") ?? 0;
    const rows = top?.Processes ?? [];
    const daemons = rows.filter((line) => /\/slipway agent/.test(line.at(-1) ?? "") && !/init/.test(line.at(-1) ?? ""));
    return daemons[0] && Number(daemons[0][pidColumn]);
  },
  isFrozen: async (_, id) => (await findContainer(id))?.State === "paused",
};

/** Copying large homes takes a while next to other work. */
const WAIT_TIMEOUT_MS = 180_000;

const workspacePath = (id: string, path: string): `/${string}` => `/api/v2/workspaces/${id}/${path}`;

class DaemonWorld {
  readonly place: ServerSlot;
  readonly admin: Client;
  readonly kind: Kind;
  readonly id: string;

  constructor(parts: Pick<DaemonWorld, "place" | "admin" | "kind" | "id">) {
    this.place = parts.place;
    this.admin = parts.admin;
    this.kind = parts.kind;
    this.id = parts.id;
  }

  async agent(id = this.id): Promise<string> {
    return until(
      async () => {
        const workspace = await this.admin.get<Workspace>(`/api/v2/workspaces/${id}`);
        const agent = findAgent(workspace);
        return agent?.status === "connected" && agent.lifecycle_state === "ready" && agent.id;
      },
      { what: `the daemon of ${id} to be connected`, timeoutMs: WAIT_TIMEOUT_MS },
    );
  }

  /** Kills the daemon. Its replacement takes a while. */
  async kill(id = this.id): Promise<void> {
    const pid = await this.kind.daemon(this.place, id);
    if (pid === undefined) throw new Error("there is no daemon");
    process.kill(pid, "SIGKILL");
  }

  async write(word: string): Promise<void> {
    await runInTerminal(this.admin, await this.agent(), `echo ${word} > ~/word`);
  }

  async read(id = this.id): Promise<string> {
    return (await runInTerminal(this.admin, await this.agent(id), "cat ~/word")).trim();
  }

  async snapshots(): Promise<Snapshot[]> {
    return until(
      async () => {
        const { snapshots } = await this.admin.get<{ snapshots: Snapshot[] }>(workspacePath(this.id, "snapshots"));
        return snapshots.every(({ status }) => ["ready", "failed"].includes(status)) && snapshots;
      },
      { what: "the snapshots to be completed", timeoutMs: WAIT_TIMEOUT_MS },
    );
  }

  async backups(): Promise<HomeBackup[]> {
    return until(
      async () => {
        const { backups } = await this.admin.get<{ backups: HomeBackup[] }>(workspacePath(this.id, "home-backups"));
        return backups.every(({ status }) => ["ready", "failed"].includes(status)) && backups;
      },
      { what: "the backups to be completed", timeoutMs: WAIT_TIMEOUT_MS },
    );
  }

  async awaitBuild(id = this.id): Promise<string> {
    return until(
      async () => {
        const { latest_build } = await this.admin.get<Workspace>(`/api/v2/workspaces/${id}?include_deleted=true`);
        return latest_build.job.completed_at !== undefined && latest_build.job.status;
      },
      { what: "the build to end", timeoutMs: WAIT_TIMEOUT_MS },
    );
  }

  /** Kills the daemon once the workspace is paused. */
  async killFrozen(): Promise<void> {
    await until(() => this.kind.isFrozen(this.place, this.id), {
      isBrief: true,
      what: "the workspace to be paused",
    });
    await this.kill();
  }
}

const assertTrue = (isTrue: boolean, failure: string): void => {
  if (!isTrue) throw new Error(failure);
};

/** Operations during which the daemon is killed. Each leaves the workspace running with the given word. */
const OPERATIONS: Readonly<Record<string, (world: DaemonWorld, word: string) => Promise<void>>> = {
  snapshot: async (world) => {
    await world.admin.post(workspacePath(world.id, "snapshots"), { name: "base" });
    await world.killFrozen();
    assertTrue((await world.snapshots())[0]?.status === "ready", "the snapshot failed");
  },
  restore: async (world, word) => {
    const [snapshot] = await world.snapshots();
    await world.write("other");
    await world.admin.post(workspacePath(world.id, "snapshots"), { name: "former" });
    await world.snapshots();
    await world.write(word);
    await world.admin.post(workspacePath(world.id, `snapshots/${snapshot?.id}/restore`), {});
    // The daemon may already be stopped for the restore.
    await world.kill().catch(() => {});
    assertTrue((await world.awaitBuild()) === "succeeded", "the restore failed");
  },
  fork: async (world, word) => {
    await world.admin.post(workspacePath(world.id, "forks"), { names: ["copy"], start: true });
    await world.killFrozen();
    const fork = await until(
      async () => {
        const [newest] = (await world.admin.get<{ forks: Fork[] }>(workspacePath(world.id, "forks"))).forks;
        return newest && ["ready", "failed"].includes(newest.status) && newest;
      },
      { what: "the fork to end", timeoutMs: WAIT_TIMEOUT_MS },
    );
    const copy = fork.copies[0]?.workspace_id ?? "";
    assertTrue(fork.status === "ready", `the fork failed: ${fork.error}`);
    assertTrue((await world.read(copy)) === word, "the fork has other files");
    await world.admin.post(workspacePath(copy, "builds"), { transition: "delete", permanent: true });
    await world.awaitBuild(copy);
  },
  "home backup": async (world) => {
    await world.admin.post(workspacePath(world.id, "home-backups"), {});
    await world.killFrozen();
    assertTrue((await world.backups())[0]?.status === "ready", "the backup failed");
  },
  "restore of a backup": async (world) => {
    const [backup] = await world.backups();
    await world.admin.post(workspacePath(world.id, `home-backups/${backup?.id}/fetch`), {});
    await world.kill();
    const [fetched] = await world.snapshots();
    assertTrue(fetched?.status === "ready", "the backup was not fetched");
    await world.admin.post(workspacePath(world.id, `snapshots/${fetched?.id}/restore`), {});
    assertTrue((await world.awaitBuild()) === "succeeded", "the restore failed");
  },
  "trash and restore": async (world) => {
    await world.admin.post(workspacePath(world.id, "builds"), { transition: "delete" });
    await world.kill().catch(() => {});
    assertTrue((await world.awaitBuild()) === "succeeded", "the delete failed");
    await world.admin.post(workspacePath(world.id, "restore"), {});
    assertTrue((await world.awaitBuild()) === "succeeded", "the workspace is not restored from the trash");
    await world.admin.post(workspacePath(world.id, "builds"), { transition: "start" });
    assertTrue((await world.awaitBuild()) === "succeeded", "the workspace does not start");
  },
  trial: async (world) => {
    await using models = await startWritingModel();
    await addWritingModel(world.admin, models);
    const [organization] = await world.admin.get<{ id: string }[]>("/api/v2/users/me/organizations");
    const content = [{ type: "text", text: "hello" }];
    const chat = await world.admin.post<Chat>("/api/v2/chats", {
      organization_id: organization?.id,
      workspace_id: world.id,
      content,
    });
    await until(async () => (await world.admin.get<Chat>(`/api/v2/chats/${chat.id}`)).status === "waiting");
    const path = `/api/v2/chats/${chat.id}/trials` as const;
    const ways = ["one", "two"].map((prompt) => ({ prompt: `Write ${prompt}` }));
    await world.admin.post(path, { ways, check_command: "echo run >> runs; sleep 2; grep -q two answer" });
    const getNewest = async (): Promise<Trial | undefined> =>
      (await world.admin.get<{ trials: Trial[] }>(path)).trials[0];
    const way = await until(async () => (await getNewest())?.ways.find(({ status }) => status === "checking"), {
      isBrief: true,
      what: "a check to run",
    });
    await world.kill(way.workspace_id);
    const ready = await until(async () => {
      const trial = await getNewest();
      return trial?.status === "ready" && trial;
    });
    const results = ready.ways.map(({ status, error }) => `${status} ${error}`.trim());
    // In a container, the check ends with the daemon, which reports it. A process of this machine survives the daemon.
    const areExpected = ready.ways.every(({ workspace_id }, i) => {
      const isKilled = workspace_id === way.workspace_id && /^error The check could not run\./.test(results[i] ?? "");
      return isKilled || results[i] === ["failed", "passed"][i];
    });
    assertTrue(areExpected, `the results of the ways are ${results}`);
    for (const { workspace_id } of ready.ways) {
      const runs = await runInTerminal(world.admin, await world.agent(workspace_id), "cat runs");
      assertTrue(runs.trim() === "run", `the check did not run exactly once: ${runs}`);
    }
    await world.admin.post(`${path}/${ready.id}/keep`, { way: 2 });
    await until(async () => ["kept", "discarded"].includes((await getNewest())?.status ?? ""));
  },
};

const checkDaemonKills = async (kind: Kind, { rounds, log }: CheckOptions): Promise<string> => {
  for (let round = 1; round <= rounds; round++) {
    await using place = await ServerSlot.make();
    const backups = { SLIPWAY_HOME_BACKUP_DIR: join(place.scratch, "backups"), SLIPWAY_HOME_BACKUP_ENGINE: "archive" };
    const address: Record<string, string> = kind === DOCKER ? { SLIPWAY_ADDRESS: `0.0.0.0:${place.port}` } : {};
    await place.start({ env: { ...kind.env, ...backups, ...address } });
    const { admin } = await signInAdmin(place);
    const { id: template_id } = await makeTemplate(admin, kind.template);
    const { id } = await admin.post<Workspace>("/api/v2/users/me/workspaces", { name: "dev", template_id });
    const world = new DaemonWorld({ place, admin, kind, id });
    await runInTerminal(admin, await world.agent(), "head -c 60000000 /dev/urandom > ~/big");
    for (const [name, operate] of Object.entries(OPERATIONS)) {
      const word = `word-${name.replaceAll(" ", "-")}`;
      await world.write(word);
      await operate(world, word);
      await world.agent();
      // A restore brings back the content of the snapshot or backup before the last word.
      const expected =
        name === "restore" ? "word-snapshot" : name === "restore of a backup" ? "word-home-backup" : word;
      const actual = await world.read();
      assertTrue(actual === expected, `${name}: ${actual} instead of ${expected}`);
      log(`${name}: ended as usual`);
    }
    await admin.post(workspacePath(id, "builds"), { transition: "delete", permanent: true });
    await world.awaitBuild();
    await place.stop();
  }
  return `${rounds} times killed in the middle of ${Object.keys(OPERATIONS).length} operations, all of them ended, the daemon was replaced`;
};

export const checks: Check[] = [
  { name: "local: daemon killed", run: (options) => checkDaemonKills(LOCAL, options) },
  ...(compiled.found && needs.docker.found
    ? [{ name: "docker: daemon killed", run: (options: CheckOptions) => checkDaemonKills(DOCKER, options) }]
    : []),
];
