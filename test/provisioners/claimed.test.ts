// A claimed prebuilt workspace: running processes continue, and dead processes are restarted unchanged.
import { expect, test } from "bun:test";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "#base/clock.ts";
import { DockerProvisioner } from "#src/provisioners/docker/docker.ts";
import type { DaemonRecord } from "#src/provisioners/local/folder.ts";
import { LocalProvisioner } from "#src/provisioners/local/local.ts";
import { isAlive } from "#src/provisioners/local/process-table.ts";
import type { BuildReport, Provisioner, ProvisionRequest, Transition } from "#src/provisioners/provisioner.ts";
import { FakeDocker } from "#test/support/docker/fake-docker.ts";
import { tempDirectory } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";

const NO_REPORT: BuildReport = { log: () => {}, timing: () => {}, charge: async () => {} };
const WORKSPACE_ID = "6f1c9f0a-1111-4222-8333-444455556666";

const runBuild = (provisioner: Provisioner, transition: Transition, claimed = false) => {
  const resources = [{ name: "dev", docker: { image: "debian:13" } }];
  const agents = [{ name: "dev", id: "a", token: claimed ? "" : "kept-token" }];
  const request: ProvisionRequest = {
    job_id: "j",
    build_id: "b",
    build_number: 1,
    transition,
    parameters: {},
    access_url: "http://127.0.0.1:7080/",
    workspace: { id: WORKSPACE_ID, name: "dev" },
    owner: { id: "o", username: "ada", email: "ada@example.com" },
    manifest: { provisioner: provisioner.name, resources },
    agents: transition === "start" ? agents : [],
    state: claimed ? "as it was" : null,
    ...(claimed ? { claimed } : {}),
  };
  return provisioner.run(request, NO_REPORT, new AbortController().signal);
};
const catchMessage = (promise: Promise<unknown>) => promise.then(() => "", String);

test("[PB-8] a running container continues, a stopped one is restarted, and a missing one fails the build", async () => {
  using temp = tempDirectory();
  await using engine = new FakeDocker(temp.path);
  const accessUrl = () => new URL("http://127.0.0.1:7080/");
  const docker = new DockerProvisioner({ host: engine.host, clock: systemClock, accessUrl });
  await runBuild(docker, "start");
  const [container] = [...engine.containers.values()];
  expect(await runBuild(docker, "start", true)).toEqual({ state: "as it was" });
  expect([...engine.containers.values()].map(({ id }) => id)).toEqual([container?.id ?? ""]);
  if (container) container.running = false;
  await runBuild(docker, "start", true);
  expect([...engine.containers.values()].map(({ id, running }) => `${id} ${running}`)).toEqual([
    `${container?.id} true`,
  ]);
  engine.containers.clear();
  expect(await catchMessage(runBuild(docker, "start", true))).toContain("no longer exists");
});

test("[PB-8] a running process continues, a dead one is restarted with its token, and a missing record fails the build", async () => {
  using temp = tempDirectory();
  const daemon = 'cat "$SLIPWAY_AGENT_TOKEN_FILE" > "$HOME/token"; while :; do sleep 0.05; done';
  const local = new LocalProvisioner({
    root: temp.path,
    clock: systemClock,
    accessUrl: () => new URL("http://127.0.0.1:7080/"),
    command: ["/bin/sh", "-c", daemon],
    environment: { PATH: process.env.PATH },
    graceMs: 0,
  });
  const folder = join(temp.path, WORKSPACE_ID);
  const token = join(folder, "home", "token");
  const readPid = (): number => JSON.parse(readFileSync(join(folder, "daemon.json"), "utf8")).pid;
  await runBuild(local, "start");
  const first = readPid();
  expect(await runBuild(local, "start", true)).toEqual({ state: "as it was" });
  expect(readPid()).toBe(first);
  await until(() => existsSync(token));
  rmSync(token);
  const record: DaemonRecord = JSON.parse(readFileSync(join(folder, "daemon.json"), "utf8"));
  process.kill(first, "SIGKILL");
  await until(() => !isAlive(record));
  await runBuild(local, "start", true);
  expect(readPid()).not.toBe(first);
  await until(() => existsSync(token) && readFileSync(token, "utf8") !== "");
  expect(readFileSync(token, "utf8")).toBe("kept-token\n");
  await runBuild(local, "delete");
  expect(await catchMessage(runBuild(local, "start", true))).toContain("no longer exists");
});
