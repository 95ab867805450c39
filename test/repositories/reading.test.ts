// The files that the server reads from a repository, their source, and its errors when a host rejects it.
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
/** Only people with a linked account can read here. */
const closed = openGitWorld((token) => token !== "" && provider.isActiveToken(token));
const open = openGitWorld();
afterAll(() => {
  for (const one of [provider, closed, open]) one[Symbol.dispose]();
});
const setting = provider.setting("git", { regex: `^http://${closed.host}/` });
const world = await forFile(openWorld({ env: { ...LOCAL, SLIPWAY_EXTERNAL_AUTH: JSON.stringify([setting]) } }));
const { admin } = world;

const app = await open.publish("app", {
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
const fix = app.git("rev-parse", "HEAD").trim();
const main = app.git("rev-parse", "main").trim();
await closed.publish("secret", { "package.json": "{}" });

const read = (requested: RepositoryAsked): Promise<RepositoryFound> =>
  admin.post<RepositoryFound>("/api/v2/repositories/read", { repository: requested });
const url = open.link("app");

/** Requests, and the commit and folder that are read. */
const ASKED: readonly (readonly [object, string, string?])[] = [
  [{ url }, main],
  [{ url: `${url}.git` }, main],
  [{ url, branch: "fix/login" }, fix],
  [{ url: `${url}`, branch: "v1.0" }, fix],
  [{ url, commit: fix }, fix],
  [{ url, pull_request: 7 }, fix],
  [{ url, pull_request: 9 }, fix],
  [{ url, branch: "main", path: "/web/" }, main, "web"],
];

test.each(ASKED.map(([requested, commit, path = ""]) => [requested, commit, path]) as never[])(
  "[RW-10] reads %j",
  async (requested: RepositoryAsked, commit: string, path: string) => {
    const { plan, problem } = await read(requested);
    expect([problem, plan?.commit, plan?.path]).toEqual(["", commit, path || undefined]);
    expect(plan?.image).toEqual(path ? "w" : expect.stringContaining("/go:"));
  },
);

/** Rejected requests and their errors. */
const REFUSED: readonly (readonly [object, string])[] = [
  [{ url, branch: "nothing" }, `The repository at ${open.host} has no branch or tag nothing.`],
  [{ url, pull_request: 8 }, `The repository at ${open.host} has no pull request 8`],
  [{ url, commit: "0".repeat(40) }, "has no commit 000"],
  [{ url: open.link("none") }, `${open.host} `],
  [
    { url: closed.link("secret") },
    `${closed.host} has no public repository secret (status 401). If it is private, link your account at ${closed.host} first, or create a deploy key for it.`,
  ],
  [{ url: "http://127.0.0.1:1/app" }, "127.0.0.1:1 cannot be reached"],
];

test.each(REFUSED as never[])(
  "[RW-12] names the refusing host and the reason: %j",
  async (requested: RepositoryAsked, words: string) => {
    const { plan, problem } = await read(requested);
    expect(plan).toBeUndefined();
    expect(problem).toContain(words);
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
  "[RW-12] answers 400 and creates nothing for %j",
  async (repository) => {
    const answer = await admin.fetch("POST", "/api/v2/repositories/read", { repository });
    expect(answer.status).toBe(400);
    const created = await admin.fetch("POST", "/api/v2/users/me/workspaces", { name: "none", repository });
    expect(created.status).toBe(400);
  },
);

test("[RW-10] reads a private repository with the account that its owner has linked, and tells which account is missing", async () => {
  const requested = { url: closed.link("secret") };
  expect(await read(requested)).toMatchObject({ account: { id: "git", linked: false } });
  await link(admin, provider, "git");
  const { plan, account } = await read(requested);
  expect([account?.linked, plan?.source]).toEqual([true, "language"]);
});

test("[RW-11] one person reads two repositories at a time, so that a slow host does not keep other people from reading", async () => {
  const { client: eve } = await newPerson(admin, "slow-eve");
  const { client: bob } = await newPerson(admin, "quick-bob");
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  let requested = 0;
  using slow = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: async () => {
      requested++;
      await released;
      return new Response("", { status: 404 });
    },
  });
  const readAs = async (client: Client, at: string): Promise<number> =>
    (await client.fetch("POST", "/api/v2/repositories/read", { repository: { url: at } })).status;
  const positions = Array.from({ length: 19 }, (_, at) => at);
  const reads = positions.map((at) => readAs(eve, `${slow.url}app-${at}`));
  // Two are read, sixteen wait, and one is refused.
  expect(await Promise.race(reads)).toBe(503);
  expect(await readAs(bob, url)).toBe(200);
  await until(() => requested >= 2);
  expect(requested).toBe(2);
  release();
  expect((await Promise.all(reads)).toSorted()).toEqual([...Array(18).fill(200), 503]);
  expect(await readAs(eve, url)).toBe(200);
});

test("[RW-20] a member who does not own the deployment cannot read from the server's machine or its networks", async () => {
  await using own = await openWorld();
  const { client } = await newPerson(own.admin, "member");
  let requested = 0;
  using host = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () => {
      requested++;
      return new Response("secret", { status: 418 });
    },
  });
  for (const at of [host.url.host, `localhost:${host.port}`, `[::1]:${host.port}`, "10.0.0.1", "169.254.169.254"]) {
    const repository = { url: `http://${at}/app` };
    const { problem } = await client.post<RepositoryFound>("/api/v2/repositories/read", { repository });
    // The message does not reveal the address that the name resolves to.
    expect(problem).toContain(`${new URL(repository.url).hostname.replace(/^\[|\]$/g, "")} is not a public address.`);
  }
  const repository = { url: `${host.url.origin}/app` };
  const created = await client.fetch("POST", "/api/v2/users/me/workspaces", { name: "none", repository });
  expect([created.status, await created.text()]).toEqual([400, expect.stringContaining("is not a public address")]);
  expect(requested).toBe(0);
  const { problem } = await own.admin.post<RepositoryFound>("/api/v2/repositories/read", { repository });
  expect(problem).toContain("418");
});

test("[RW-10] never calls a non-public address on a server that others use, and follows no redirect to one", async () => {
  using temp = tempDirectory();
  const outbound = new Outbound({ clock: systemClock, allowed: [], resolve: async () => ["127.0.0.1"] });
  const reader = new RepositoryReader({ outbound, clock: systemClock, root: temp.path });
  const refs = listCandidateRefs({});
  for (const one of [url, "http://git.example.com/app"]) {
    const refused = reader.open({ url: one, refs });
    await expect(refused).rejects.toThrow("is not a public address");
  }
  let requested = 0;
  using host = Bun.serve({
    port: 0,
    fetch: () => {
      requested++;
      return Response.redirect("http://169.254.169.254/app/info/refs?service=git-upload-pack");
    },
  });
  const here = new Outbound({ clock: systemClock, allowed: ["127.0.0.0/8"] });
  const redirected = new RepositoryReader({ outbound: here, clock: systemClock, root: temp.path });
  await expect(redirected.open({ url: `http://127.0.0.1:${host.port}/app`, refs })).rejects.toThrow(
    "not a public address",
  );
  expect(requested).toBe(1);
});

test("[RW-10] sends a token only to its own host, and follows a repository that the host has moved", async () => {
  const seen: (string | null)[] = [];
  using host = Bun.serve({
    port: 0,
    fetch: (request) => {
      seen.push(request.headers.get("authorization"));
      return Response.redirect(`${url}.git/info/refs?service=git-upload-pack`);
    },
  });
  using temp = tempDirectory();
  const outbound = new Outbound({ clock: systemClock, allowed: ["127.0.0.0/8"] });
  const reader = new RepositoryReader({ outbound, clock: systemClock, root: join(temp.path, "copies") });
  const credential = { username: "ann", password: "secret" };
  const moved = `http://127.0.0.1:${host.port}/old`;
  using found = await reader.open({ url: moved, refs: listCandidateRefs({}), credential });
  expect([found.url, found.commit, await found.read("go.mod")]).toEqual([`${url}.git`, main, "module app"]);
  expect(seen).toEqual([`Basic ${btoa("ann:secret")}`]);
});

test("[RW-11] stops at its limits of time and size, and leaves nothing behind", async () => {
  using temp = tempDirectory();
  const root = join(temp.path, "copies");
  const outbound = new Outbound({ clock: systemClock, allowed: ["127.0.0.0/8"] });
  const leftover = join(root, "copy-of-a-killed-server");
  mkdirSync(leftover, { recursive: true });
  writeFileSync(join(leftover, "deploy-key"), "private");
  using silent = Bun.serve({ port: 0, fetch: () => new Promise<Response>(() => {}) });
  const slow = new RepositoryReader({ outbound, clock: systemClock, root, timeout_ms: 200 });
  // Its deploy key is deleted before a repository is read.
  expect(existsSync(leftover)).toBe(false);
  const refs = listCandidateRefs({});
  await expect(slow.open({ url: `http://127.0.0.1:${silent.port}/app`, refs })).rejects.toThrow(
    "took longer than 0.2 seconds",
  );
  const big = await open.publish("big", {});
  big.write("random", crypto.getRandomValues(new Uint8Array(60_000)));
  big.git("add", ".");
  big.git("commit", "-q", "-m", "big");
  big.git("push", "-q", "hosted", "main");
  const small = new RepositoryReader({ outbound, clock: systemClock, root, max_bytes: 20_000 });
  await expect(small.open({ url: open.link("big"), refs, isWhole: true })).rejects.toThrow("larger than");
  const controller = new AbortController();
  controller.abort(new Error("no longer needed"));
  await expect(slow.open({ url, refs, signal: controller.signal })).rejects.toThrow("no longer needed");
  expect(existsSync(root) ? readdirSync(root) : []).toEqual([]);
});

testNeeding(
  [needs.git, requireSingleServer("local")],
  "[RW-9] a plan that a user submits is computed again, and only its link is used",
  async () => {
    const { id } = await admin.post<Workspace>("/api/v2/users/me/workspaces", {
      name: "planned",
      repository: { url, branch: "main" },
    });
    const isOver = ({ latest_build }: Workspace): boolean => latest_build.job.status === "succeeded";
    const { latest_build, template_id } = await awaitWorkspace(admin, id, isOver);
    const listValues = (build: string) =>
      admin.get<{ name: string; value: string }[]>(`/api/v2/workspacebuilds/${build}/parameters`);
    const [created] = await listValues(latest_build.id);
    const plan: RepositoryPlan = JSON.parse(created?.value ?? "{}");
    const createWith = (name: string, value: object) => {
      const rich_parameter_values = [{ name: created?.name, value: JSON.stringify(value) }];
      return admin.post<Workspace>("/api/v2/users/me/workspaces", { name, template_id, rich_parameter_values });
    };
    const changed = { ...plan, container_env: { CHANGED: "yes" } };
    const copy = await awaitWorkspace(admin, (await createWith("copied", changed)).id, isOver);
    const [{ value = "" } = {}] = await listValues(copy.latest_build.id);
    expect([JSON.parse(value).ref, value.includes("CHANGED")]).toEqual([plan.ref, false]);
    const elsewhere = createWith("elsewhere", { ...plan, url: `${url}-of-somebody-else` });
    expect((await elsewhere.catch((error) => error)).status).toBe(400);
    for (const one of [id, copy.id]) await removeWorkspace(admin, one);
  },
);

testNeeding(
  [needs.git, requireSingleServer("local")],
  "[RW-9] a link as a parameter's value is read when it is set, and not again with the same value",
  async () => {
    const { id } = await admin.post<Workspace>("/api/v2/users/me/workspaces", {
      name: "kept",
      repository: { url, branch: "main" },
    });
    const isOver = ({ latest_build }: Workspace): boolean => latest_build.job.status === "succeeded";
    const { latest_build } = await awaitWorkspace(admin, id, isOver);
    const listValues = (build: string) => admin.get<{ value: string }[]>(`/api/v2/workspacebuilds/${build}/parameters`);
    const [{ value } = { value: "" }] = await listValues(latest_build.id);
    app.git("checkout", "-q", "main");
    app.write("package.json", "{}");
    app.git("rm", "-q", "go.mod");
    app.git("add", ".");
    app.git("commit", "-q", "-m", "another language");
    app.git("push", "-q", "hosted", "main");
    const startAgain = async (values: readonly object[]) => {
      await createBuild(admin, id, "start", { rich_parameter_values: values } as never);
      const { latest_build } = await awaitWorkspace(admin, id, isOver);
      return JSON.parse((await listValues(latest_build.id))[0]?.value ?? "{}");
    };
    expect(await startAgain([])).toEqual(JSON.parse(value));
    expect((await startAgain([{ name: "repository", value: url }])).image).toContain("/javascript-node:");
    const bad = await admin.fetch("POST", `/api/v2/workspaces/${id}/builds`, {
      transition: "start",
      rich_parameter_values: [{ name: "repository", value: '{"url":"x"}' }],
    });
    expect(bad.status).toBe(400);
    await removeWorkspace(admin, id);
  },
);

testNeeding(
  [needs.git, requireSingleServer("local")],
  "[RW-34] administrators who may not enter a workspace get its repository's link instead of the plan, whose texts are hidden, and keep the plan",
  async () => {
    await using own = await openWorld({
      env: Object.assign({ SLIPWAY_ALLOW_LOCAL_PROVISIONER_FOR_MEMBERS: "true" }, LOCAL),
    });
    const { admin } = own;
    await open.publish("inner", {
      ".devcontainer.json":
        '{"image":"w","postCreateCommand":"echo inner-command","remoteEnv":{"INNER":"inner-value"}}',
    });
    const link = open.link("inner");
    const lead = await newPerson(admin, "lead");
    await admin.put("/api/v2/organizations/default/members/lead/roles", { roles: ["organization-admin"] });
    const { id } = await admin.post<Workspace>("/api/v2/users/me/workspaces", {
      name: "inner",
      repository: { url: link, branch: "main" },
    });
    const isOver = ({ latest_build }: Workspace): boolean => latest_build.job.status === "succeeded";
    await awaitWorkspace(admin, id, isOver);
    const listValues = async (client: Client): Promise<string[]> => {
      const { latest_build } = await client.get<Workspace>(`/api/v2/workspaces/${id}`);
      const values = await client.get<{ value: string }[]>(`/api/v2/workspacebuilds/${latest_build.id}/parameters`);
      return values.map(({ value }) => value);
    };
    const [plan = ""] = await listValues(admin);
    expect([plan.includes("inner-command"), plan.includes('"refs/heads/main"')]).toEqual([true, true]);
    expect(await listValues(lead.client)).toEqual([link]);
    const { key: limited } = await admin.post<{ key: string }>("/api/v2/users/me/keys/tokens", {
      scopes: ["workspace:read"],
    });
    expect(await listValues(admin.withToken(limited))).toEqual([link]);
    const { latest_build } = await lead.client.get<Workspace>(`/api/v2/workspaces/${id}`);
    const [agent] = latest_build.resources[0]?.agents ?? [];
    expect(agent?.environment_variables.INNER).toBe("(hidden)");
    expect(agent?.scripts.map(({ script }) => script)).toContain("(hidden)");
    expect(JSON.stringify(latest_build)).not.toMatch(/inner-(?:command|value)/);
    await createBuild(lead.client, id, "start", {
      rich_parameter_values: [{ name: "repository", value: link }],
    } as never);
    await awaitWorkspace(admin, id, isOver);
    expect(await listValues(admin)).toEqual([plan]);
    await removeWorkspace(admin, id);
  },
);

test("[RW-21] someone who is not in the default organization opens repositories in one of their own", async () => {
  const env = Object.assign({ SLIPWAY_ALLOW_LOCAL_PROVISIONER_FOR_MEMBERS: "true" }, LOCAL);
  await using own = await openWorld({ env });
  const organization = async (name: string) =>
    (await own.admin.post<{ id: string }>("/api/v2/organizations", { name })).id;
  const [crew, fleet] = [await organization("crew"), await organization("fleet")];
  const make = async (username: string, organization_ids: string[]) => {
    const account = { email: `${username}@example.com`, username, password: PASSWORD, organization_ids };
    await own.admin.post<unknown>("/api/v2/users", account);
    return own.admin.withToken(undefined).signIn(account.email, PASSWORD);
  };
  const open = async (client: Client, organization: string | undefined, name: string) => {
    const path = organization ? `/organizations/${organization}/members/me/workspaces` : "/users/me/workspaces";
    const created = await client.post<Workspace>(`/api/v2${path}`, { name, repository: { url } });
    await removeWorkspace(client, (await awaitBuild(client, created.id)).id);
    return [created.organization_id, created.template_name];
  };
  const bob = await make("bob", [crew]);
  expect(await open(bob, undefined, "first")).toEqual([crew, "repository-local"]);
  const ann = await make("ann", [crew, fleet]);
  expect(await open(ann, fleet, "second")).toEqual([fleet, "repository-local"]);
  const template = (await own.admin.get<Template[]>(`/api/v2/organizations/${crew}/templates`))[0];
  await own.admin.patch(`/api/v2/templates/${template?.id}/acl`, { group_perms: { [crew]: "" } });
  const refused = await bob.fetch("POST", "/api/v2/users/me/workspaces", { name: "third", repository: { url } });
  expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining("is not shared with you")]);
});

test("[RW-25] a repository of more than 200,000 files is not read, however few bytes they are", async () => {
  const many = await open.publish("many", { "a.txt": "a" });
  const blob = many.git("rev-parse", "HEAD:a.txt").trim();
  /** The hash of a tree of so many entries that are the same. */
  const tree = (count: number, entry: string): string => {
    const lines = Array.from({ length: count }, (_, i) => `${entry}\t${i}\n`).join("");
    return Bun.spawnSync(["git", "mktree"], { cwd: many.root, stdin: Buffer.from(lines) })
      .stdout.toString()
      .trim();
  };
  const root = tree(201, `040000 tree ${tree(1_000, `100644 blob ${blob}`)}`);
  many.git("push", "-q", "-f", "hosted", `${many.git("commit-tree", "-m", "many", root).trim()}:refs/heads/main`);
  expect((await read({ url: open.link("many") })).problem).toBe("The repository has too many files to be read here.");
});

/** A line of git's protocol: its length in hex, then its text. */
const formatPacket = (...parts: readonly (string | Uint8Array)[]): Buffer => {
  const body = Buffer.concat(parts.map((part) => Buffer.from(part)));
  return Buffer.concat([Buffer.from((body.byteLength + 4).toString(16).padStart(4, "0")), body]);
};
const FLUSH = "0000";
const DELIMITER = "0001";
const COMMIT = 1;
const TREE = 2;

type PackObject = { readonly type: number; readonly content: Buffer; readonly claimed?: number };

/** A pack of objects, which can claim another size than they have. */
const createPack = (...objects: readonly PackObject[]): Buffer => {
  const encoded = objects.map(({ type, content, claimed = content.byteLength }) => {
    const header = [(type << 4) | (claimed & 15) | 0x80];
    let left = Math.floor(claimed / 16);
    for (; left >= 128; left = Math.floor(left / 128)) header.push((left & 0x7f) | 0x80);
    header.push(left);
    return Buffer.concat([Buffer.from(header), deflateSync(content)]);
  });
  const head = Buffer.from(`PACK\0\0\0\u0002\0\0\0${String.fromCharCode(objects.length)}`, "latin1");
  const pack = Buffer.concat([head, ...encoded]);
  return Buffer.concat([pack, createHash("sha1").update(pack).digest()]);
};

const hashObject = (type: string, content: Buffer): string =>
  createHash("sha1").update(`${type} ${content.byteLength}\0`).update(content).digest("hex");

/** A git host whose only commit comes with this pack. */
const servePack = (commit: string, pack: Buffer) =>
  Bun.serve({
    port: 0,
    async fetch(request) {
      const requested = request.method === "POST" ? await request.text() : "";
      const parts =
        requested === ""
          ? [
              ...[formatPacket("# service=git-upload-pack\n"), FLUSH, formatPacket("version 2\n")],
              ...[formatPacket("ls-refs=unborn\n"), formatPacket("fetch=shallow filter\n"), FLUSH],
            ]
          : requested.includes("command=ls-refs")
            ? [
                formatPacket(`${commit} HEAD symref-target:refs/heads/main\n`),
                ...[formatPacket(`${commit} refs/heads/main\n`), FLUSH],
              ]
            : [
                ...[formatPacket("shallow-info\n"), formatPacket(`shallow ${commit}`), DELIMITER],
                ...[formatPacket("packfile\n"), formatPacket("\u0001", pack), FLUSH],
              ];
      const type = `application/x-git-upload-pack-${requested === "" ? "advertisement" : "result"}`;
      return new Response(Buffer.concat(parts.map((part) => Buffer.from(part))), { headers: { "content-type": type } });
    },
  });

test("[RW-11] a small pack whose object claims gigabytes takes little memory", async () => {
  using temp = tempDirectory();
  const tree = { type: TREE, content: Buffer.alloc(1_000), claimed: 3 * 1024 * 1024 * 1024 };
  using host = servePack("1".repeat(40), createPack(tree));
  const outbound = new Outbound({ clock: systemClock, allowed: ["127.0.0.0/8"] });
  const reader = new RepositoryReader({ outbound, clock: systemClock, root: join(temp.path, "copies") });
  const refs = listCandidateRefs({});
  await expect(reader.open({ url: `http://127.0.0.1:${host.port}/x/y`, refs })).rejects.toThrow(
    /^Git needs more than \d+ MiB of memory/,
  );
});

test("[RW-11] invalid objects are a problem of the repository, not of the server", async () => {
  const tree = Buffer.alloc(1_000);
  const text = `tree ${hashObject("tree", tree)}\nauthor A <a@example.com> 0 +0000\ncommitter A <a@example.com> 0 +0000\n\na\n`;
  const commit = Buffer.from(text);
  const pack = createPack({ type: COMMIT, content: commit }, { type: TREE, content: tree });
  using host = servePack(hashObject("commit", commit), pack);
  const at = `127.0.0.1:${host.port}`;
  const { plan, problem } = await read({ url: `http://${at}/x/y` });
  expect(plan).toBeUndefined();
  expect(problem).toStartWith(`Git could not read the repository from ${at}: malformed mode in tree entry`);
});
