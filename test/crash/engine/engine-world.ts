// A server and a Docker Engine, both of which tests kill, and a workspace with two volumes in which a program counts: shared by the checks
// of kills around Docker.
import { join } from "node:path";
import { systemClock } from "#base/clock.ts";
import { createTarEnd, createTarEntry, joinStreams } from "#base/program-tar.ts";
import type { Build } from "#schema/workspaces/build.ts";
import type { Fork } from "#schema/workspaces/fork.ts";
import type { HomeBackup } from "#schema/workspaces/home-backup.ts";
import type { Snapshot } from "#schema/workspaces/snapshot.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import type { Client } from "#src/client.ts";
import { Engine } from "#src/provisioners/docker/engine.ts";
import { BINARY, IMAGE } from "#test/support/docker/docker-world.ts";
import { EngineProxy } from "#test/support/docker/engine-proxy.ts";
import { OwnEngine } from "#test/support/docker/own-engine.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";
import { ServerSlot } from "../server.ts";
import { signInAdmin } from "../server-world.ts";

/** Writes the same number to a file of each volume, one after the other. */
const COUNT =
  "n=0; while true; do n=$((n+1)); echo $n > /home/dev/t; mv /home/dev/t /home/dev/n; echo $n > /data/t; mv /data/t /data/n; done";
const TEMPLATE = `
provisioner: docker
resources:
  - name: dev
    docker:
      image: ${IMAGE}
      pull: never
      user: "0"
      network: none
      stop_grace: 0
      command: [sh, -c, "${COUNT}"]
      volumes: [{name: home, path: /home/dev}, {name: data, path: /data}]
`;
/** Large enough that a copy can be interrupted. */
const BIG_FILE_BYTES = 8 * 1024 * 1024;

type Row = { readonly Id: string; readonly State?: string; readonly Names?: readonly string[] };

export class EngineWorld implements AsyncDisposable {
  readonly place: ServerSlot;
  readonly engine: OwnEngine;
  readonly proxy: EngineProxy;
  readonly admin: Client;
  readonly template_id: string;
  readonly env: Readonly<Record<string, string>>;
  /** True if containers keep running without their engine. */
  readonly livesOn: boolean;
  /** Calls the engine without the proxy. */
  readonly direct: Engine;

  private constructor(
    parts: Pick<EngineWorld, "place" | "engine" | "proxy" | "admin" | "template_id" | "env" | "livesOn">,
  ) {
    this.place = parts.place;
    this.engine = parts.engine;
    this.proxy = parts.proxy;
    this.admin = parts.admin;
    this.template_id = parts.template_id;
    this.env = parts.env;
    this.livesOn = parts.livesOn;
    this.direct = new Engine(`unix://${this.engine.socket}`, systemClock);
  }

  static async open(...options: string[]): Promise<EngineWorld> {
    const engine = await OwnEngine.start(...options);
    const place = await ServerSlot.make();
    const proxy = new EngineProxy(join(place.scratch, "engine.sock"), engine.socket);
    const env = {
      SLIPWAY_DOCKER_HOST: proxy.host,
      SLIPWAY_DOCKER_ACCESS_URL: "http://host.docker.internal",
      SLIPWAY_HOME_BACKUP_DIR: join(place.scratch, "backups"),
      SLIPWAY_HOME_BACKUP_ENGINE: "archive",
      SLIPWAY_ALLOWED_PRIVATE_NETWORKS: "127.0.0.0/8",
      ...(BINARY === "" ? {} : { SLIPWAY_AGENT_BINARY: BINARY }),
    };
    await place.start({ env });
    const { admin } = await signInAdmin(place);
    const { id: template_id } = await makeTemplate(admin, TEMPLATE);
    const livesOn = options.includes("--live-restore");
    return new EngineWorld({ place, engine, proxy, admin, template_id, env, livesOn });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.place[Symbol.asyncDispose]();
    this.proxy[Symbol.dispose]();
    await this.engine[Symbol.asyncDispose]();
  }

  /** Creates a running workspace with large files in both volumes. */
  async makeWorkspace(name: string): Promise<string> {
    const { id } = await this.admin.post<Workspace>("/api/v2/users/me/workspaces", {
      name,
      template_id: this.template_id,
    });
    await this.awaitBuild(id);
    await this.runInContainer(id, `for d in /home/dev /data; do head -c ${BIG_FILE_BYTES} /dev/urandom > $d/big; done`);
    return id;
  }

  /** Returns the latest build once it has ended, with any result. */
  awaitBuild(id: string): Promise<Build> {
    return until(
      async () => {
        const { latest_build } = await this.admin.get<Workspace>(`/api/v2/workspaces/${id}?include_deleted=true`);
        return latest_build.job.completed_at !== undefined && latest_build;
      },
      { what: "the build to end" },
    );
  }

  /** Requests a build and returns it once it has ended. */
  async build(id: string, transition: "start" | "stop" | "delete", options: object = {}): Promise<Build> {
    await this.admin.post(`/api/v2/workspaces/${id}/builds`, { transition, ...options });
    return this.awaitBuild(id);
  }

  /** Returns a workspace's snapshots once none is being created or deleted. */
  snapshots(id: string): Promise<Snapshot[]> {
    return until(
      async () => {
        const { snapshots } = await this.admin.get<{ snapshots: Snapshot[] }>(`/api/v2/workspaces/${id}/snapshots`);
        return snapshots.every(({ status }) => ["ready", "failed"].includes(status)) && snapshots;
      },
      { what: "the snapshots to be completed" },
    );
  }

  /** Returns the newest fork of a workspace once it has ended. */
  fork(id: string): Promise<Fork> {
    return until(
      async () => {
        const [newest] = (await this.admin.get<{ forks: Fork[] }>(`/api/v2/workspaces/${id}/forks`)).forks;
        return newest && ["ready", "failed"].includes(newest.status) && newest;
      },
      { what: "the fork to end" },
    );
  }

  /** Returns a workspace's home backups once none is being created. */
  backups(id: string): Promise<HomeBackup[]> {
    return until(
      async () => {
        const { backups } = await this.admin.get<{ backups: HomeBackup[] }>(`/api/v2/workspaces/${id}/home-backups`);
        return backups.every(({ status }) => ["ready", "failed"].includes(status)) && backups;
      },
      { what: "the backups to be completed" },
    );
  }

  /** Writes a word into both volumes of a running workspace. */
  async write(id: string, word: string): Promise<void> {
    const text = new TextEncoder().encode(word);
    const tar = joinStreams([createTarEntry("home/dev/word", text), createTarEntry("data/word", text), createTarEnd()]);
    const path = `/containers/${await this.container(id)}/archive`;
    await this.direct.json("write", "PUT", path, { query: { path: "/" }, tar });
  }

  /** Returns the word in each volume of a running workspace, and the sizes of the large files. */
  async read(id: string): Promise<string> {
    return await this.runInContainer(
      id,
      "cat /home/dev/word; echo; cat /data/word; echo; wc -c < /home/dev/big; wc -c < /data/big",
    );
  }

  /** Waits until the program in the workspace continues to count. */
  async waitUntilCounterRuns(id: string): Promise<void> {
    const countBefore = await this.runInContainer(id, "cat /data/n");
    await until(async () => (await this.runInContainer(id, "cat /data/n")) !== countBefore, {
      what: "the workspace to continue",
    });
  }

  async isRunning(id: string): Promise<boolean> {
    return (await this.containers(`slipway.workspace_id=${id}`)).some(({ State }) => State === "running");
  }

  async container(id: string): Promise<string> {
    const running = await this.containers(`slipway.workspace_id=${id}`);
    const [container] = running.filter(({ State }) => State === "running");
    if (!container) throw new Error(`no container of ${id} runs: ${running.map(({ State }) => State)}`);
    return container.Id;
  }

  /** Runs a command in the workspace's container and returns its output. */
  async runInContainer(id: string, script: string): Promise<string> {
    const created = await this.direct.json<{ Id: string }>(
      "exec",
      "POST",
      `/containers/${await this.container(id)}/exec`,
      {
        body: { Cmd: ["sh", "-c", script], AttachStdout: true, User: "0", Tty: true },
      },
    );
    const output = await fetch(`http://docker/exec/${created?.Id}/start`, {
      method: "POST",
      unix: this.engine.socket,
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ Detach: false, Tty: true }),
    } as RequestInit);
    return (await output.text()).trim().replaceAll("\r", "");
  }

  async containers(label: string): Promise<readonly Row[]> {
    const query = { all: "true", filters: JSON.stringify({ label: [label] }) };
    return (await this.direct.json<Row[]>("list", "GET", "/containers/json", { query })) ?? [];
  }

  async volumes(label: string): Promise<string[]> {
    const query = { filters: JSON.stringify({ label: [label] }) };
    const response = await this.direct.json<{ Volumes?: { Name: string }[] | null }>("list", "GET", "/volumes", {
      query,
    });
    return (response?.Volumes ?? []).map(({ Name }) => Name).sort();
  }

  /** Returns what the engine has that no workspace or snapshot needs, and what it lacks; an empty list if everything is right. */
  async problems(id: string): Promise<string[]> {
    // The snapshots of a workspace in the trash remain, but cannot be queried.
    const snapshots = await this.snapshots(id).catch(() => undefined);
    const ready = (snapshots ?? []).filter(({ status }) => status === "ready");
    const ownVolumes = await this.volumes(`slipway.workspace_id=${id}`);
    const copies = await this.volumes(`slipway.snapshot_of=${id}`);
    const containers = await this.containers(`slipway.workspace_id=${id}`);
    const helpers = [
      ...(await this.containers("slipway.snapshot_id")),
      ...(await this.containers("slipway.helper_of")),
    ];
    const expectedCopies = ready
      .flatMap((snapshot) => ["data", "home"].map((volume) => `slipway-snapshot-${snapshot.id}-${volume}`))
      .sort();
    return [
      ownVolumes.length === 2 ? "" : `volumes: ${ownVolumes}`,
      !snapshots || `${copies}` === `${expectedCopies}` ? "" : `copies: ${copies} instead of ${expectedCopies}`,
      helpers.length === 0 ? "" : `helpers: ${helpers.map(({ Names }) => Names)}`,
      containers.some(({ State }) => State === "paused") ? "a container is paused" : "",
    ].filter((line) => line !== "");
  }

  /** Waits until the engine has everything that it needs, and nothing else. */
  async waitUntilConsistent(id: string): Promise<void> {
    let problems: string[] = [];
    await until(
      async () => {
        problems = await this.problems(id);
        return problems.length === 0;
      },
      { what: "the engine to have nothing left over", timeoutMs: 30_000 },
    ).catch((error) => {
      throw new Error(`${(error as Error).message}: ${problems.join("; ")}`);
    });
  }
}
