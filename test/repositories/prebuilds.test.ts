// Prebuilt images of repositories, with a real engine, a git host, and push events as hosts send them.
import { afterAll, expect } from "bun:test";
import { createHmac } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "#base/clock.ts";
import { PREBUILD_FAILPOINTS } from "#base/failpoint.ts";
import type { CreatedRepositoryPrebuild, RepositoryPrebuild } from "#schema/templates/repository-prebuild.ts";
import { DockerProvisioner } from "#src/provisioners/docker/docker.ts";
import { Engine } from "#src/provisioners/docker/engine.ts";
import { newPerson } from "#test/api/users/people.ts";
import { ServerSlot } from "#test/crash/server.ts";
import { forFile } from "#test/support/for-file.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { requireSingleServer } from "#test/support/one-server.ts";
import { ADMIN, tempDirectory } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import { openWorld } from "#test/support/workspaces.ts";
import { openGitWorld } from "./world.ts";

const PATH = "/api/v2/repositories/prebuilds";
const temp = tempDirectory();
const git = openGitWorld();
afterAll(() => {
  git[Symbol.dispose]();
  temp[Symbol.dispose]();
});
const program = join(temp.path, "slipway");
// The first bytes of a Linux program, which these tests never start.
writeFileSync(
  program,
  Buffer.concat([Buffer.from("\x7fELF"), Buffer.alloc(14), Buffer.from([62, 0]), Buffer.alloc(64)]),
);
const env = {
  SLIPWAY_DOCKER_HOST: needs.docker.file || "unix:///nowhere/docker.sock",
  SLIPWAY_DOCKER_ACCESS_URL: "http://host.docker.internal",
  SLIPWAY_AGENT_BINARY: program,
  SLIPWAY_ALLOWED_PRIVATE_NETWORKS: "127.0.0.0/8",
};
const world = await forFile(openWorld({ env }));
const { admin } = world;
const engine = new Engine(env.SLIPWAY_DOCKER_HOST, systemClock);
if (needs.docker.found) await engine.connect();

const createDockerfile = (word: string): string => `FROM slipway-test:1\nRUN echo ${word} >/tmp/word\n`;
const loadPrebuild = async (id: string): Promise<RepositoryPrebuild> => {
  const prebuild = (await admin.get<RepositoryPrebuild[]>(PATH)).find((candidate) => candidate.id === id);
  if (!prebuild) throw new Error("the prebuild was removed");
  return prebuild;
};
/** Waits until the image of this commit is built, and returns the prebuild. */
const awaitBuilt = (id: string, commit: string): Promise<RepositoryPrebuild> =>
  until(async () => {
    const prebuild = await loadPrebuild(id);
    if (prebuild.status === "failed") throw new Error(prebuild.error);
    return prebuild.status === "ready" && prebuild.commit === commit && prebuild;
  });
/** Returns the IDs of images built from a repository. */
const listImages = async (url: string): Promise<string[]> => {
  const query = { filters: JSON.stringify({ label: [`slipway.repository=${url}`] }) };
  return ((await engine.json<{ Id: string }[]>("list", "GET", "/images/json", { query })) ?? []).map(({ Id }) => Id);
};
const sendPush = (url: string, headers: Record<string, string>, body = "{}"): Promise<Response> =>
  fetch(url.replace(/^https?:\/\/[^/]+/, world.server.url.origin), { method: "POST", headers, body });

testNeeding(
  [needs.docker, needs.git, requireSingleServer("engine")],
  "[IB-4] [IB-6] [IB-8] the server prebuilds the image of the newest commit, again after a signed push, and removes older images",
  async () => {
    const app = await git.publish("ahead", { Dockerfile: createDockerfile(crypto.randomUUID()) });
    const getHead = (): string => app.git("rev-parse", "HEAD").trim();
    const url = git.link("ahead");
    const { prebuild, secret } = await admin.post<CreatedRepositoryPrebuild>(PATH, { url, keep: 1 });
    expect(prebuild).toMatchObject({ url, name: "ahead", keep: 1, interval_hours: 0, owner_name: "admin" });
    const first = await awaitBuilt(prebuild.id, getHead());
    expect([first.images, first.log]).toEqual([1, expect.stringContaining("Building the image of the repository.")]);
    const [before] = await listImages(url);

    app.write("Dockerfile", createDockerfile(crypto.randomUUID()));
    app.git("commit", "-q", "-a", "-m", "second");
    app.git("push", "-q", "hosted", "main");
    const body = JSON.stringify({ ref: "refs/heads/main", repository: { clone_url: "http://elsewhere.example.com" } });
    const sign = (key: string) => `sha256=${createHmac("sha256", key).update(body).digest("hex")}`;
    const headers = { "x-github-event": "push", "content-type": "application/json" };
    const rejection = await sendPush(first.webhook_url, { ...headers, "x-hub-signature-256": sign("other") }, body);
    const unknownUrl = first.webhook_url.replace(prebuild.id, crypto.randomUUID());
    const unknownResponse = await sendPush(unknownUrl, { ...headers, "x-hub-signature-256": sign(secret) }, body);
    expect([rejection.status, unknownResponse.status]).toEqual([404, 404]);
    expect(await rejection.text()).toBe(await unknownResponse.text());
    const signedHeaders = { ...headers, "x-hub-signature-256": sign(secret) };
    expect((await sendPush(first.webhook_url, signedHeaders, body)).status).toBe(204);
    const second = await awaitBuilt(prebuild.id, getHead());
    const after = await listImages(url);
    expect([second.images, after.length, after.includes(before ?? "")]).toEqual([1, 1, false]);

    // A repeated event does not start a build, and neither does an event that is not a push.
    expect((await sendPush(first.webhook_url, signedHeaders, body)).status).toBe(204);
    expect((await sendPush(first.webhook_url, { ...signedHeaders, "x-github-event": "ping" }, body)).status).toBe(204);
    expect((await listImages(url)).length).toBe(1);
    await admin.delete(`${PATH}/${prebuild.id}`);
    expect((await sendPush(first.webhook_url, signedHeaders, body)).status).toBe(404);
    const { audit_logs } = await admin.get("/api/v2/audit?q=resource_type:repository_prebuild&limit=10");
    const entries = audit_logs.map(({ action, resource_target }) => [action, resource_target]);
    expect(entries).toEqual([
      ["delete", url],
      ["create", url],
    ]);

    // A workspace's build uses the prebuilt image.
    const provisioner = new DockerProvisioner({
      host: env.SLIPWAY_DOCKER_HOST,
      clock: systemClock,
      accessUrl: () => new URL("http://x"),
    });
    const found = await admin.post(`/api/v2/repositories/read`, { repository: { url } });
    const lines: string[] = [];
    const report = { log: (_: string, __: string, line: string) => void lines.push(line), timing: () => {} };
    const { signal } = new AbortController();
    if (!found.plan) throw new Error(found.problem);
    const names = await provisioner.images.build(found.plan, "", report, signal);
    expect(lines).toEqual([`Using the existing image of the repository: ${names[0]}.`]);
    await provisioner.images.remove(names, signal);
  },
);

testNeeding(
  [needs.docker, needs.git, requireSingleServer("engine")],
  "[IB-5] only template managers can add a repository, once and with its default branch; a failed build shows its error",
  async () => {
    await git.publish("broken", { Dockerfile: "FROM slipway-test:1\nRUN exit 3\n" });
    const url = git.link("broken");
    const { prebuild } = await admin.post<CreatedRepositoryPrebuild>(PATH, { url, interval_hours: 1 });
    const failed = await until(async () => {
      const found = await loadPrebuild(prebuild.id);
      return found.status === "failed" && found;
    });
    expect(failed.error).toContain("returned a non-zero code: 3");
    expect(failed.next_at).toBeDefined();
    const duplicate = admin.post(PATH, { url });
    await expect(duplicate).rejects.toMatchObject({ status: 409 });
    const branchLink = { url: `${url}/tree/main` };
    await expect(admin.post(PATH, branchLink)).rejects.toMatchObject({ status: 400 });
    const { client } = await newPerson(admin, "ada");
    await expect(client.post(PATH, { url })).rejects.toMatchObject({ status: 403 });
    expect(await client.get<RepositoryPrebuild[]>(PATH)).toEqual([]);
    await expect(client.delete(`${PATH}/${prebuild.id}`)).rejects.toMatchObject({ status: 404 });
    await expect(client.post(`${PATH}/${prebuild.id}/build`)).rejects.toMatchObject({ status: 404 });
    await admin.delete(`${PATH}/${prebuild.id}`);
    expect(await admin.get<RepositoryPrebuild[]>(PATH)).toEqual([]);
  },
);

testNeeding(
  [needs.docker, needs.git, requireSingleServer("engine")],
  "[IB-10] deleting an organization removes its prebuilds and stops their builds, so that the next build starts",
  async () => {
    const { id: organization_id } = await admin.post<{ id: string }>("/api/v2/organizations", { name: "closing" });
    await git.publish("endless", { Dockerfile: "FROM slipway-test:1\nRUN sleep 3000\n" });
    const request = { url: git.link("endless"), organization_id };
    const { prebuild, secret } = await admin.post<CreatedRepositoryPrebuild>(PATH, request);
    await until(async () => (await loadPrebuild(prebuild.id)).status === "building");
    const app = await git.publish("waiting", { Dockerfile: createDockerfile(crypto.randomUUID()) });
    const nextPrebuild = await admin.post<CreatedRepositoryPrebuild>(PATH, { url: git.link("waiting") });
    await admin.delete("/api/v2/organizations/closing");
    const headers = {
      "x-github-event": "push",
      "x-hub-signature-256": `sha256=${createHmac("sha256", secret).update("{}").digest("hex")}`,
    };
    expect((await sendPush(prebuild.webhook_url, headers)).status).toBe(404);
    await awaitBuilt(nextPrebuild.prebuild.id, app.git("rev-parse", "HEAD").trim());
    expect((await admin.get<RepositoryPrebuild[]>(PATH)).map(({ name }) => name)).toEqual(["waiting"]);
    await admin.delete(`${PATH}/${nextPrebuild.prebuild.id}`);
  },
);

testNeeding(
  [needs.docker, needs.git, requireSingleServer("engine"), requireSingleServer("needsLocalServerProcess")],
  "[IB-9] after a kill at any failpoint, the next start of the server builds the image exactly once",
  async () => {
    const app = await git.publish("killed", { Dockerfile: "FROM slipway-test:1\n" });
    const url = git.link("killed");
    await using server = await ServerSlot.make();
    await server.start({ env });
    const owner = await server.client.signIn(ADMIN.email, ADMIN.password);
    const { prebuild } = await owner.post<CreatedRepositoryPrebuild>(PATH, { url, keep: 1 });
    const loadFirst = async () => (await owner.get<RepositoryPrebuild[]>(PATH))[0];
    await until(async () => (await loadFirst())?.status === "ready");
    for (const point of PREBUILD_FAILPOINTS) {
      app.write("Dockerfile", createDockerfile(point + crypto.randomUUID()));
      app.git("commit", "-q", "-a", "-m", point);
      app.git("push", "-q", "hosted", "main");
      await server.stop();
      const failing = await server.start({ env: { ...env, SLIPWAY_FAILPOINT: point } });
      await owner.post(`${PATH}/${prebuild.id}/build`).catch(() => {});
      expect({ point, signal: (await failing.ended).signal }).toEqual({ point, signal: "SIGKILL" });
      await server.start({ env });
      const commit = app.git("rev-parse", "HEAD").trim();
      const built = await until(async () => {
        const found = await loadFirst();
        return found?.commit === commit && found.status === "ready" && found;
      });
      expect({ point, kept: built.images, there: (await listImages(url)).length }).toEqual({
        point,
        kept: 1,
        there: 1,
      });
    }
    await owner.delete(`${PATH}/${prebuild.id}`);
    await server.stop();
  },
);
