// The REST requests of VS Code's extension for Coder servers, in addition to its command line (docs/spec/facts/vscode-plugin.md, 2 and 3).
import { describe, expect, test } from "bun:test";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { sha256 } from "#base/ids.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { Client } from "#src/client.ts";
import { ADMIN, startTestServer, tempDirectory } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import {
  awaitBuild,
  awaitWorkspace,
  createWorkspace,
  ECHO,
  openWorld,
  seedTemplate,
  type World,
} from "#test/support/workspaces.ts";

const PROGRAM = new Uint8Array(200_000).map((_, i) => i % 251);

describe("the program", () => {
  test("[TF-13] is identified by its SHA-1, and sent compressed once it was compressed", async () => {
    using folder = tempDirectory();
    const binaries = join(folder.path, "binaries");
    mkdirSync(binaries);
    writeFileSync(join(binaries, "slipway-darwin-arm64"), PROGRAM);
    await using server = await startTestServer({ env: { SLIPWAY_AGENT_BINARIES: binaries } });
    const get = (headers: Record<string, string>) =>
      fetch(new URL("/bin/coder-darwin-arm64", server.url), { headers, decompress: false } as never);
    const sha1 = new Bun.CryptoHasher("sha1").update(PROGRAM).digest("hex");
    const plain = await get({ "accept-encoding": "identity" });
    expect([plain.headers.get("content-encoding"), plain.headers.get("x-original-content-length")]).toEqual([
      null,
      "200000",
    ]);
    expect((await plain.bytes()).byteLength).toBe(200_000);
    const cachedResponse = await get({ "if-none-match": `"${sha1}"` });
    expect([cachedResponse.status, cachedResponse.headers.get("etag")]).toEqual([304, `"${sha256(PROGRAM)}"`]);
    expect((await get({ "if-none-match": '"other"' })).status).toBe(200);

    const packed = await until(async () => {
      const answer = await get({ "accept-encoding": "gzip, br" });
      return answer.headers.get("content-encoding") === "gzip" && answer;
    });
    const bytes = await packed.bytes();
    expect(bytes.byteLength).toBeLessThan(PROGRAM.byteLength / 2);
    expect(sha256(new Uint8Array(gunzipSync(bytes)))).toBe(sha256(PROGRAM));
    expect(readdirSync(join(server.directory, "cache", "programs"))).toEqual([`${sha256(PROGRAM)}.gz`]);
    const etag = packed.headers.get("etag") as string;
    expect((await get({ "accept-encoding": "gzip", "if-none-match": etag })).status).toBe(304);
    // Nothing is signed for that extension, which accepts only its vendor's keys.
    expect((await fetch(new URL("/bin/coder-darwin-arm64.asc", server.url))).status).toBe(404);
  });
});

describe("pages that it opens", () => {
  test("[WK-32] link to the workspace, its schedule and its builds, to the task's chat, or to the list", async () => {
    await using world = await openWorld();
    const { template_id } = await seedTemplate(world.server, ECHO);
    const { id } = await createWorkspace(world.admin, template_id);
    const open = async (path: string, client = world.admin) => {
      const answer = await client.fetch("GET", path);
      return [answer.status, answer.headers.get("location")];
    };
    expect(await open("/@admin/dev")).toEqual([307, `/workspaces/${id}`]);
    expect(await open("/@Admin/Dev")).toEqual([307, `/workspaces/${id}`]);
    expect(await open("/@admin/dev/settings")).toEqual([307, `/workspaces/${id}/schedule`]);
    expect(await open("/@admin/dev/settings/parameters")).toEqual([307, `/workspaces/${id}/schedule`]);
    expect(await open("/@admin/dev/builds/1")).toEqual([307, `/workspaces/${id}/builds`]);
    expect(await open("/@admin/none")).toEqual([307, "/workspaces"]);
    expect(await open("/tasks/admin/none")).toEqual([307, "/tasks"]);
    const outsider = new Client(world.server.url);
    expect(await open("/@admin/dev", outsider)).toEqual([307, "/login?redirect=%2F%40admin%2Fdev"]);
    expect(await open("/tasks/admin/x", outsider)).toEqual([307, "/login?redirect=%2Ftasks%2Fadmin%2Fx"]);
    // Apps keep their paths.
    expect((await open("/@admin/dev.dev/apps/none/"))[0]).toBe(404);
    expect((await open("/@admin/dev/other"))[0]).toBe(404);
    // Another user's workspace is indistinguishable from a missing one.
    await world.admin.post("/api/v2/users", { email: "sam@example.com", username: "sam", password: ADMIN.password });
    const sam = await new Client(world.server.url).signIn("sam@example.com", ADMIN.password);
    expect(await open("/@admin/dev", sam)).toEqual([307, "/workspaces"]);
  });

  test("[WK-32] a task leads to its chat or its workspace", async () => {
    await using world = await openWorld();
    const { template_id } = await seedTemplate(world.server, ECHO);
    const template = await world.admin.get<{ active_version_id: string }>(`/api/v2/templates/${template_id}`);
    const task = await world.admin.post<{ id: string; name: string; workspace_id: { uuid: string } | string }>(
      "/api/v2/tasks/me",
      { input: "say hello", template_version_id: template.active_version_id },
    );
    const answer = await world.admin.fetch("GET", `/tasks/admin/${task.id}`);
    expect([answer.status, answer.headers.get("location")]).toEqual([
      307,
      expect.stringMatching(/^\/(workspaces|chats)\/[0-9a-f-]{36}$/),
    ]);
  });
});

describe("a key with the scopes that the extension requests", () => {
  const SCOPES = [
    "workspace:read",
    "workspace:update",
    "workspace:start",
    "workspace:ssh",
    "workspace:application_connect",
    "template:read",
    "user:read_personal",
  ];
  const openPlugin = async ({ server, admin }: World, scopes = SCOPES): Promise<Client> => {
    const { key } = await admin.post<{ key: string }>("/api/v2/users/me/keys/tokens", {
      scopes,
      lifetime: 3_600_000_000_000,
    } as never);
    return new Client(server.url, key);
  };

  test("[ID-21] can call its lists; the tasks panel gets the name of the missing scope", async () => {
    await using world = await openWorld();
    const plugin = await openPlugin(world);
    for (const path of [
      "users/me",
      "workspaces?q=owner:me",
      "templates",
      "deployment/ssh",
      "buildinfo",
      "appearance",
      "experiments",
    ]) {
      expect([path, (await plugin.fetch("GET", `/api/v2/${path}`)).status]).toEqual([path, 200]);
    }
    const refused = await plugin.fetch("GET", "/api/v2/tasks?q=owner:me");
    const message = (await refused.json()) as { detail: string };
    expect([refused.status, message.detail]).toEqual([403, expect.stringContaining("task:read")]);
  });

  test("[ID-29] updates a running workspace, and cannot stop or restart it otherwise", async () => {
    await using world = await openWorld();
    const { template_id, version_id } = await seedTemplate(world.server, ECHO);
    const { id } = await createWorkspace(world.admin, template_id);
    await awaitBuild(world.admin, id);
    const restart = async (client: Client, body: object) => {
      const answer = await client.fetch("POST", `/api/v2/workspaces/${id}/restart`, body);
      return [answer.status, ((await answer.json()) as { detail?: string }).detail];
    };
    const plugin = await openPlugin(world);
    expect(await restart(plugin, {})).toEqual([403, expect.stringContaining("workspace:stop")]);
    const version = { template_version_id: version_id };
    const startPlugin = await openPlugin(world, ["workspace:start", "workspace:read"]);
    expect(await restart(startPlugin, version)).toEqual([403, expect.stringContaining("workspace:stop")]);
    const changing = await openPlugin(world, ["workspace:update", "workspace:read"]);
    expect(await restart(changing, version)).toEqual([403, expect.stringContaining("workspace:start")]);
    expect((await restart(plugin, version))[0]).toBe(201);
    const hasRestarted = ({ latest_build: { build_number, status } }: Workspace) =>
      build_number === 3 && status === "running";
    expect(hasRestarted(await awaitWorkspace(world.admin, id, hasRestarted))).toBe(true);
  });
});
