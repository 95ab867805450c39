// How the server reads repositories: which commit and folder, from which addresses, within which limits, and with which errors.
import { afterAll, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { deflateSync } from "node:zlib";
import { systemClock } from "#base/clock.ts";
import { listCandidateRefs } from "#base/links/repository-address.ts";
import { Outbound } from "#base/outbound.ts";
import type { RepositoryAsked, RepositoryFound, RepositoryPlan } from "#schema/templates/repository.ts";
import type { Template } from "#schema/templates/template.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import type { Client } from "#src/client.ts";
import { RepositoryReader } from "#src/git/repository-reader.ts";
import { FakeProvider } from "#test/api/external-auth/provider.ts";
import { LOCAL, link } from "#test/api/external-auth/world.ts";
import { newPerson, PASSWORD } from "#test/api/users/people.ts";
import { forFile } from "#test/support/for-file.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { requireSingleServer } from "#test/support/one-server.ts";
import { tempDirectory } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import { awaitBuild, awaitWorkspace, createBuild, openWorld } from "#test/support/workspaces.ts";
import { openGitWorld, removeWorkspace } from "./world.ts";

const provider = new FakeProvider();
/** A git host that requires a token of a linked account. */
const privateHost = openGitWorld((token) => token !== "" && provider.isActiveToken(token));
const publicHost = openGitWorld();
afterAll(() => {
  for (const resource of [provider, privateHost, publicHost]) resource[Symbol.dispose]();
});
const setting = provider.setting("git", { regex: `^http://${privateHost.host}/` });
const world = await forFile(openWorld({ env: { ...LOCAL, SLIPWAY_EXTERNAL_AUTH: JSON.stringify([setting]) } }));
const { admin } = world;

const app = await publicHost.publish("app", {
  "go.mod": "module app",
  "web/.devcontainer.json": '{"image":"w"}',
  "web/a.txt": "a",
});
app.git("checkout", "-q", "-b", "fix/login");
app.write("web/fix.txt", "fix");
app.git("add", ".");
app.git("commit", "-q", "-m", "fix");
app.git("push", "-q", "hosted", "fix/login", "HEAD:refs/pull/7/head", "HEAD:refs/merge-requests/9/head");
app.git("tag", "v1.0");
app.git("push", "-q", "hosted", "v1.0");
const fixCommit = app.git("rev-parse", "HEAD").trim();
const mainCommit = app.git("rev-parse", "main").trim();
await privateHost.publish("secret", { "package.json": "{}" });

const readRepository = (requested: RepositoryAsked): Promise<RepositoryFound> =>
  admin.post<RepositoryFound>("/api/v2/repositories/read", { repository: requested });
const url = publicHost.link("app");
const hasSucceeded = ({ latest_build }: Workspace): boolean => latest_build.job.status === "succeeded";

/** Requests, each with the commit and the folder that the server reads. */
const REQUESTS: readonly (readonly [object, string, string?])[] = [
  [{ url }, mainCommit],
  [{ url: `${url}.git` }, mainCommit],
  [{ url, branch: "fix/login" }, fixCommit],
  [{ url: `${url}`, branch: "v1.0" }, fixCommit],
  [{ url, commit: fixCommit }, fixCommit],
  [{ url, pull_request: 7 }, fixCommit],
  [{ url, pull_request: 9 }, fixCommit],
  [{ url, branch: "main", path: "/web/" }, mainCommit, "web"],
];

test.each(REQUESTS.map(([requested, commit, path = ""]) => [requested, commit, path]) as never[])(
  "[RW-10] reads %j",
  async (requested: RepositoryAsked, commit: string, path: string) => {
    const { plan, problem } = await readRepository(requested);
    expect([problem, plan?.commit, plan?.path]).toEqual(["", commit, path || undefined]);
    expect(plan?.image).toEqual(path ? "w" : expect.stringContaining("/go:"));
  },
);

/** Rejected requests and their errors. */
const REJECTED_REQUESTS: readonly (readonly [object, string])[] = [
  [{ url, branch: "nothing" }, `The repository at ${publicHost.host} has no branch or tag nothing.`],
  [{ url, pull_request: 8 }, `The repository at ${publicHost.host} has no pull request 8`],
  [{ url, commit: "0".repeat(40) }, "has no commit 000"],
  [{ url: publicHost.link("none") }, `${publicHost.host} `],
  [
    { url: privateHost.link("secret") },
    `${privateHost.host} has no public repository secret (status 401). If it is private, link your account at ${privateHost.host} first, or create a deploy key for it.`,
  ],
  [{ url: "http://127.0.0.1:1/app" }, "127.0.0.1:1 cannot be reached"],
];

test.each(REJECTED_REQUESTS as never[])(
  "[RW-12] reports the host and the reason of a rejection: %j",
  async (requested: RepositoryAsked, message: string) => {
    const { plan, problem } = await readRepository(requested);
    expect(plan).toBeUndefined();
    expect(problem).toContain(message);
  },
);

const INVALID_SELECTIONS: readonly object[] = [
  { url: "file:///etc" },
  { url: "ssh://a%0ab/x/y" },
  { url, branch: "--upload-pack=id" },
  { url, branch: "a..b" },
  { url, path: "../x" },
  { url, path: "nowhere" },
  { url, branch: "main", pull_request: 7 },
];

test.each(INVALID_SELECTIONS as RepositoryAsked[])(
  "[RW-12] returns 400 and creates nothing for %j",
  async (repository) => {
    const response = await admin.fetch("POST", "/api/v2/repositories/read", { repository });
    expect(response.status).toBe(400);
    const created = await admin.fetch("POST", "/api/v2/users/me/workspaces", { name: "none", repository });
    expect(created.status).toBe(400);
  },
);

test("[RW-10] reads a private repository with the user's linked account, or names the account to link", async () => {
  const requested = { url: privateHost.link("secret") };
  expect(await readRepository(requested)).toMatchObject({ account: { id: "git", linked: false } });
  await link(admin, provider, "git");
  const { plan, account } = await readRepository(requested);
  expect([account?.linked, plan?.source]).toEqual([true, "language"]);
});

test("[RW-11] reads only two repositories per person at a time, so that slow hosts do not delay other people", async () => {
  const { client: eve } = await newPerson(admin, "slow-eve");
  const { client: bob } = await newPerson(admin, "quick-bob");
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  let requestCount = 0;
  using slowHost = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: async () => {
      requestCount++;
      await released;
      return new Response("", { status: 404 });
    },
  });
  const readAs = async (client: Client, url: string): Promise<number> =>
    (await client.fetch("POST", "/api/v2/repositories/read", { repository: { url } })).status;
  const positions = Array.from({ length: 19 }, (_, index) => index);
  const responses = positions.map((index) => readAs(eve, `${slowHost.url}app-${index}`));
  // Two requests are active, sixteen wait, and one is rejected.
  expect(await Promise.race(responses)).toBe(503);
  expect(await readAs(bob, url)).toBe(200);
  await until(() => requestCount >= 2);
  expect(requestCount).toBe(2);
  release();
  expect((await Promise.all(responses)).toSorted()).toEqual([...Array(18).fill(200), 503]);
  expect(await readAs(eve, url)).toBe(200);
});

test("[RW-20] does not read from the server's machine or its networks for members who do not own the deployment", async () => {
  await using ownWorld = await openWorld();
  const { client } = await newPerson(ownWorld.admin, "member");
  let requestCount = 0;
  using host = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () => {
      requestCount++;
      return new Response("secret", { status: 418 });
    },
  });
  for (const address of [
    host.url.host,
    `localhost:${host.port}`,
    `[::1]:${host.port}`,
    "10.0.0.1",
    "169.254.169.254",
  ]) {
    const repository = { url: `http://${address}/app` };
    const { problem } = await client.post<RepositoryFound>("/api/v2/repositories/read", { repository });
    // The message does not reveal the IP address of a name.
    expect(problem).toContain(`${new URL(repository.url).hostname.replace(/^\[|\]$/g, "")} is not a public address.`);
  }
  const repository = { url: `${host.url.origin}/app` };
  const created = await client.fetch("POST", "/api/v2/users/me/workspaces", { name: "none", repository });
  expect([created.status, await created.text()]).toEqual([400, expect.stringContaining("is not a public address")]);
  expect(requestCount).toBe(0);
  const { problem } = await ownWorld.admin.post<RepositoryFound>("/api/v2/repositories/read", { repository });
  expect(problem).toContain("418");
});

test("[RW-10] never calls a private address on a server with several users, not even after a redirect", async () => {
  using temp = tempDirectory();
  const outbound = new Outbound({ clock: systemClock, allowed: [], resolve: async () => ["127.0.0.1"] });
  const reader = new RepositoryReader({ outbound, clock: systemClock, root: temp.path });
  const refs = listCandidateRefs({});
  for (const privateUrl of [url, "http://git.example.com/app"]) {
    const reading = reader.open({ url: privateUrl, refs });
    await expect(reading).rejects.toThrow("is not a public address");
  }
  let requestCount = 0;
  using host = Bun.serve({
    port: 0,
    fetch: () => {
      requestCount++;
      return Response.redirect("http://169.254.169.254/app/info/refs?service=git-upload-pack");
    },
  });
  const loopbackOnly = new Outbound({ clock: systemClock, allowed: ["127.0.0.0/8"] });
  const redirected = new RepositoryReader({ outbound: loopbackOnly, clock: systemClock, root: temp.path });
  await expect(redirected.open({ url: `http://127.0.0.1:${host.port}/app`, refs })).rejects.toThrow(
    "not a public address",
  );
  expect(requestCount).toBe(1);
});

testNeeding([needs.ssh], "[RW-12] names a host without an address, also with a deploy key", async () => {
  using temp = tempDirectory();
  const resolve = () => Promise.reject(Object.assign(new Error("getaddrinfo"), { code: "ENOTFOUND" }));
  const outbound = new Outbound({ clock: systemClock, allowed: [], resolve });
  const reader = new RepositoryReader({ outbound, clock: systemClock, root: temp.path });
  const refs = listCandidateRefs({});
  const deploy_key = { ssh_url: "ssh://git@git.example.com/app.git", private_key: "" };
  for (const more of [{}, { deploy_key }]) {
    await expect(reader.open({ url: "https://git.example.com/app", refs, ...more })).rejects.toMatchObject({
      name: "RepositoryError",
      kind: "unreachable",
      message: "git.example.com cannot be reached (its name leads nowhere).",
    });
  }
});

test("[RW-10] sends a token only to its own host, and follows redirects of a moved repository", async () => {
  const authorizations: (string | null)[] = [];
  using host = Bun.serve({
    port: 0,
    fetch: (request) => {
      authorizations.push(request.headers.get("authorization"));
      return Response.redirect(`${url}.git/info/refs?service=git-upload-pack`);
    },
  });
  using temp = tempDirectory();
  const outbound = new Outbound({ clock: systemClock, allowed: ["127.0.0.0/8"] });
  const reader = new RepositoryReader({ outbound, clock: systemClock, root: join(temp.path, "copies") });
  const credential = { username: "ann", password: "secret" };
  const oldUrl = `http://127.0.0.1:${host.port}/old`;
  using repository = await reader.open({ url: oldUrl, refs: listCandidateRefs({}), credential });
  expect([repository.url, repository.commit, await repository.read("go.mod")]).toEqual([
    `${url}.git`,
    mainCommit,
    "module app",
  ]);
  expect(authorizations).toEqual([`Basic ${btoa("ann:secret")}`]);
});

test("[RW-11] stops at its time and size limits, and leaves nothing behind", async () => {
  using temp = tempDirectory();
  const root = join(temp.path, "copies");
  const outbound = new Outbound({ clock: systemClock, allowed: ["127.0.0.0/8"] });
  const leftover = join(root, "copy-of-a-killed-server");
  mkdirSync(leftover, { recursive: true });
  writeFileSync(join(leftover, "deploy-key"), "private");
  using silentHost = Bun.serve({ port: 0, fetch: () => new Promise<Response>(() => {}) });
  const impatientReader = new RepositoryReader({ outbound, clock: systemClock, root, timeout_ms: 200 });
  // A new reader deletes copies of a killed server, which may contain a deploy key, before it reads a repository.
  expect(existsSync(leftover)).toBe(false);
  const refs = listCandidateRefs({});
  await expect(impatientReader.open({ url: `http://127.0.0.1:${silentHost.port}/app`, refs })).rejects.toThrow(
    "took longer than 0.2 seconds",
  );
  const largeRepository = await publicHost.publish("big", {});
  largeRepository.write("random", crypto.getRandomValues(new Uint8Array(60_000)));
  largeRepository.git("add", ".");
  largeRepository.git("commit", "-q", "-m", "big");
  largeRepository.git("push", "-q", "hosted", "main");
  const limitedReader = new RepositoryReader({ outbound, clock: systemClock, root, max_bytes: 20_000 });
  await expect(limitedReader.open({ url: publicHost.link("big"), refs, isWhole: true })).rejects.toThrow("larger than");
  const controller = new AbortController();
  controller.abort(new Error("no longer needed"));
  await expect(impatientReader.open({ url, refs, signal: controller.signal })).rejects.toThrow("no longer needed");
  expect(existsSync(root) ? readdirSync(root) : []).toEqual([]);
});

testNeeding(
  [needs.git, requireSingleServer("local")],
  "[RW-9] the server computes a plan that a user submits again, and uses only its link",
  async () => {
    const { id } = await admin.post<Workspace>("/api/v2/users/me/workspaces", {
      name: "planned",
      repository: { url, branch: "main" },
    });
    const { latest_build, template_id } = await awaitWorkspace(admin, id, hasSucceeded);
    const listValues = (build: string) =>
      admin.get<{ name: string; value: string }[]>(`/api/v2/workspacebuilds/${build}/parameters`);
    const [created] = await listValues(latest_build.id);
    const plan: RepositoryPlan = JSON.parse(created?.value ?? "{}");
    const createWith = (name: string, value: object) => {
      const rich_parameter_values = [{ name: created?.name, value: JSON.stringify(value) }];
      return admin.post<Workspace>("/api/v2/users/me/workspaces", { name, template_id, rich_parameter_values });
    };
    const changedPlan = { ...plan, container_env: { CHANGED: "yes" } };
    const copy = await awaitWorkspace(admin, (await createWith("copied", changedPlan)).id, hasSucceeded);
    const [{ value = "" } = {}] = await listValues(copy.latest_build.id);
    expect([JSON.parse(value).ref, value.includes("CHANGED")]).toEqual([plan.ref, false]);
    const otherRepository = createWith("elsewhere", { ...plan, url: `${url}-of-somebody-else` });
    expect((await otherRepository.catch((error) => error)).status).toBe(400);
    for (const workspaceId of [id, copy.id]) await removeWorkspace(admin, workspaceId);
  },
);

testNeeding(
  [needs.git, requireSingleServer("local")],
  "[RW-9] the server reads a link in a parameter when it is set, and not again for the same value",
  async () => {
    const { id } = await admin.post<Workspace>("/api/v2/users/me/workspaces", {
      name: "kept",
      repository: { url, branch: "main" },
    });
    const { latest_build } = await awaitWorkspace(admin, id, hasSucceeded);
    const listValues = (build: string) => admin.get<{ value: string }[]>(`/api/v2/workspacebuilds/${build}/parameters`);
    const [{ value } = { value: "" }] = await listValues(latest_build.id);
    app.git("checkout", "-q", "main");
    app.write("package.json", "{}");
    app.git("rm", "-q", "go.mod");
    app.git("add", ".");
    app.git("commit", "-q", "-m", "another language");
    app.git("push", "-q", "hosted", "main");
    const restartWith = async (values: readonly object[]) => {
      await createBuild(admin, id, "start", { rich_parameter_values: values } as never);
      const { latest_build } = await awaitWorkspace(admin, id, hasSucceeded);
      return JSON.parse((await listValues(latest_build.id))[0]?.value ?? "{}");
    };
    expect(await restartWith([])).toEqual(JSON.parse(value));
    expect((await restartWith([{ name: "repository", value: url }])).image).toContain("/javascript-node:");
    const response = await admin.fetch("POST", `/api/v2/workspaces/${id}/builds`, {
      transition: "start",
      rich_parameter_values: [{ name: "repository", value: '{"url":"x"}' }],
    });
    expect(response.status).toBe(400);
    await removeWorkspace(admin, id);
  },
);

testNeeding(
  [needs.git, requireSingleServer("local")],
  "[RW-34] administrators without access to a workspace's contents get the repository's link, and their builds keep the plan",
  async () => {
    await using ownWorld = await openWorld({
      env: Object.assign({ SLIPWAY_ALLOW_LOCAL_PROVISIONER_FOR_MEMBERS: "true" }, LOCAL),
    });
    const { admin } = ownWorld;
    await publicHost.publish("inner", {
      ".devcontainer.json":
        '{"image":"w","postCreateCommand":"echo inner-command","remoteEnv":{"INNER":"inner-value"}}',
    });
    const link = publicHost.link("inner");
    const orgAdmin = await newPerson(admin, "lead");
    await admin.put("/api/v2/organizations/default/members/lead/roles", { roles: ["organization-admin"] });
    const { id } = await admin.post<Workspace>("/api/v2/users/me/workspaces", {
      name: "inner",
      repository: { url: link, branch: "main" },
    });
    await awaitWorkspace(admin, id, hasSucceeded);
    const listValues = async (client: Client): Promise<string[]> => {
      const { latest_build } = await client.get<Workspace>(`/api/v2/workspaces/${id}`);
      const values = await client.get<{ value: string }[]>(`/api/v2/workspacebuilds/${latest_build.id}/parameters`);
      return values.map(({ value }) => value);
    };
    const [plan = ""] = await listValues(admin);
    expect([plan.includes("inner-command"), plan.includes('"refs/heads/main"')]).toEqual([true, true]);
    expect(await listValues(orgAdmin.client)).toEqual([link]);
    const { key: limitedKey } = await admin.post<{ key: string }>("/api/v2/users/me/keys/tokens", {
      scopes: ["workspace:read"],
    });
    expect(await listValues(admin.withToken(limitedKey))).toEqual([link]);
    const { latest_build } = await orgAdmin.client.get<Workspace>(`/api/v2/workspaces/${id}`);
    const [agent] = latest_build.resources[0]?.agents ?? [];
    expect(agent?.environment_variables.INNER).toBe("(hidden)");
    expect(agent?.scripts.map(({ script }) => script)).toContain("(hidden)");
    expect(JSON.stringify(latest_build)).not.toMatch(/inner-(?:command|value)/);
    await createBuild(orgAdmin.client, id, "start", {
      rich_parameter_values: [{ name: "repository", value: link }],
    } as never);
    await awaitWorkspace(admin, id, hasSucceeded);
    expect(await listValues(admin)).toEqual([plan]);
    await removeWorkspace(admin, id);
  },
);

test("[RW-21] a user outside the default organization opens repositories in one of their own organizations", async () => {
  const env = Object.assign({ SLIPWAY_ALLOW_LOCAL_PROVISIONER_FOR_MEMBERS: "true" }, LOCAL);
  await using ownWorld = await openWorld({ env });
  const createOrganization = async (name: string) =>
    (await ownWorld.admin.post<{ id: string }>("/api/v2/organizations", { name })).id;
  const [crew, fleet] = [await createOrganization("crew"), await createOrganization("fleet")];
  const createUser = async (username: string, organization_ids: string[]) => {
    const account = { email: `${username}@example.com`, username, password: PASSWORD, organization_ids };
    await ownWorld.admin.post<unknown>("/api/v2/users", account);
    return ownWorld.admin.withToken(undefined).signIn(account.email, PASSWORD);
  };
  const openRepository = async (client: Client, organizationId: string | undefined, name: string) => {
    const path = organizationId ? `/organizations/${organizationId}/members/me/workspaces` : "/users/me/workspaces";
    const created = await client.post<Workspace>(`/api/v2${path}`, { name, repository: { url } });
    await removeWorkspace(client, (await awaitBuild(client, created.id)).id);
    return [created.organization_id, created.template_name];
  };
  const bob = await createUser("bob", [crew]);
  expect(await openRepository(bob, undefined, "first")).toEqual([crew, "repository-local"]);
  const ann = await createUser("ann", [crew, fleet]);
  expect(await openRepository(ann, fleet, "second")).toEqual([fleet, "repository-local"]);
  const template = (await ownWorld.admin.get<Template[]>(`/api/v2/organizations/${crew}/templates`))[0];
  await ownWorld.admin.patch(`/api/v2/templates/${template?.id}/acl`, { group_perms: { [crew]: "" } });
  const response = await bob.fetch("POST", "/api/v2/users/me/workspaces", { name: "third", repository: { url } });
  expect([response.status, await response.text()]).toEqual([400, expect.stringContaining("is not shared with you")]);
});

test("[RW-25] the server does not read a repository of more than 200,000 files, even if it is small", async () => {
  const repository = await publicHost.publish("many", { "a.txt": "a" });
  const blob = repository.git("rev-parse", "HEAD:a.txt").trim();
  /** Creates a tree with `count` equal entries and returns its hash. */
  const createTree = (count: number, entry: string): string => {
    const lines = Array.from({ length: count }, (_, i) => `${entry}\t${i}\n`).join("");
    return Bun.spawnSync(["git", "mktree"], { cwd: repository.root, stdin: Buffer.from(lines) })
      .stdout.toString()
      .trim();
  };
  const root = createTree(201, `040000 tree ${createTree(1_000, `100644 blob ${blob}`)}`);
  repository.git(
    "push",
    "-q",
    "-f",
    "hosted",
    `${repository.git("commit-tree", "-m", "many", root).trim()}:refs/heads/main`,
  );
  expect((await readRepository({ url: publicHost.link("many") })).problem).toBe(
    "The repository has too many files to be read here.",
  );
});

/** Formats a line of git's protocol: its length in hex, then its content. */
const formatPacket = (...parts: readonly (string | Uint8Array)[]): Buffer => {
  const body = Buffer.concat(parts.map((part) => Buffer.from(part)));
  return Buffer.concat([Buffer.from((body.byteLength + 4).toString(16).padStart(4, "0")), body]);
};
const FLUSH = "0000";
const DELIMITER = "0001";
const COMMIT = 1;
const TREE = 2;

type PackObject = { readonly type: number; readonly content: Buffer; readonly claimedBytes?: number };

/** Creates a pack of objects. An object can claim another size than its real one. */
const createPack = (...objects: readonly PackObject[]): Buffer => {
  const encoded = objects.map(({ type, content, claimedBytes = content.byteLength }) => {
    const header = [(type << 4) | (claimedBytes & 15) | 0x80];
    let remaining = Math.floor(claimedBytes / 16);
    for (; remaining >= 128; remaining = Math.floor(remaining / 128)) header.push((remaining & 0x7f) | 0x80);
    header.push(remaining);
    return Buffer.concat([Buffer.from(header), deflateSync(content)]);
  });
  const head = Buffer.from(`PACK\0\0\0\u0002\0\0\0${String.fromCharCode(objects.length)}`, "latin1");
  const pack = Buffer.concat([head, ...encoded]);
  return Buffer.concat([pack, createHash("sha1").update(pack).digest()]);
};

const hashObject = (type: string, content: Buffer): string =>
  createHash("sha1").update(`${type} ${content.byteLength}\0`).update(content).digest("hex");

/** Starts a git host whose only commit is in this pack. */
const servePack = (commit: string, pack: Buffer) =>
  Bun.serve({
    port: 0,
    async fetch(request) {
      const requestBody = request.method === "POST" ? await request.text() : "";
      const parts =
        requestBody === ""
          ? [
              ...[formatPacket("# service=git-upload-pack\n"), FLUSH, formatPacket("version 2\n")],
              ...[formatPacket("ls-refs=unborn\n"), formatPacket("fetch=shallow filter\n"), FLUSH],
            ]
          : requestBody.includes("command=ls-refs")
            ? [
                formatPacket(`${commit} HEAD symref-target:refs/heads/main\n`),
                ...[formatPacket(`${commit} refs/heads/main\n`), FLUSH],
              ]
            : [
                ...[formatPacket("shallow-info\n"), formatPacket(`shallow ${commit}`), DELIMITER],
                ...[formatPacket("packfile\n"), formatPacket("\u0001", pack), FLUSH],
              ];
      const type = `application/x-git-upload-pack-${requestBody === "" ? "advertisement" : "result"}`;
      return new Response(Buffer.concat(parts.map((part) => Buffer.from(part))), { headers: { "content-type": type } });
    },
  });

test("[RW-11] reading a small pack whose object claims gigabytes stays within the memory limit", async () => {
  using temp = tempDirectory();
  const tree = { type: TREE, content: Buffer.alloc(1_000), claimedBytes: 3 * 1024 * 1024 * 1024 };
  using host = servePack("1".repeat(40), createPack(tree));
  const outbound = new Outbound({ clock: systemClock, allowed: ["127.0.0.0/8"] });
  const reader = new RepositoryReader({ outbound, clock: systemClock, root: join(temp.path, "copies") });
  const refs = listCandidateRefs({});
  await expect(reader.open({ url: `http://127.0.0.1:${host.port}/x/y`, refs })).rejects.toThrow(
    /^Git needs more than \d+ MiB of memory/,
  );
});

test("[RW-11] invalid objects are reported as a problem of the repository", async () => {
  const tree = Buffer.alloc(1_000);
  const text = `tree ${hashObject("tree", tree)}\nauthor A <a@example.com> 0 +0000\ncommitter A <a@example.com> 0 +0000\n\na\n`;
  const commit = Buffer.from(text);
  const pack = createPack({ type: COMMIT, content: commit }, { type: TREE, content: tree });
  using host = servePack(hashObject("commit", commit), pack);
  const hostAddress = `127.0.0.1:${host.port}`;
  const { plan, problem } = await readRepository({ url: `http://${hostAddress}/x/y` });
  expect(plan).toBeUndefined();
  expect(problem).toStartWith(`Git could not read the repository from ${hostAddress}: malformed mode in tree entry`);
});
