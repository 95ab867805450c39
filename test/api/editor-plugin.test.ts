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

describe("the agent program", () => {
  test("[TF-13] is identified by its SHA-1, and is sent compressed once compression has finished", async () => {
    using folder = tempDirectory();
    const binaries = join(folder.path, "binaries");
    mkdirSync(binaries);
    writeFileSync(join(binaries, "slipway-darwin-arm64"), PROGRAM);
    await using server = await startTestServer({ env: { SLIPWAY_AGENT_BINARIES: binaries } });
    const download = (headers: Record<string, string>) =>
      fetch(new URL("/bin/coder-darwin-arm64", server.url), { headers, decompress: false } as never);
    const sha1 = new Bun.CryptoHasher("sha1").update(PROGRAM).digest("hex");
    const uncompressed = await download({ "accept-encoding": "identity" });
    expect([
      uncompressed.headers.get("content-encoding"),
      uncompressed.headers.get("x-original-content-length"),
    ]).toEqual([null, "200000"]);
    expect((await uncompressed.bytes()).byteLength).toBe(200_000);
    const cachedResponse = await download({ "if-none-match": `"${sha1}"` });
    expect([cachedResponse.status, cachedResponse.headers.get("etag")]).toEqual([304, `"${sha256(PROGRAM)}"`]);
    expect((await download({ "if-none-match": '"other"' })).status).toBe(200);

    const compressed = await until(async () => {
      const response = await download({ "accept-encoding": "gzip, br" });
      return response.headers.get("content-encoding") === "gzip" && response;
    });
    const bytes = await compressed.bytes();
    expect(bytes.byteLength).toBeLessThan(PROGRAM.byteLength / 2);
    expect(sha256(new Uint8Array(gunzipSync(bytes)))).toBe(sha256(PROGRAM));
    expect(readdirSync(join(server.directory, "cache", "programs"))).toEqual([`${sha256(PROGRAM)}.gz`]);
    const etag = compressed.headers.get("etag") as string;
    expect((await download({ "accept-encoding": "gzip", "if-none-match": etag })).status).toBe(304);
    // There is no signature, because that extension accepts only its vendor's keys.
    expect((await fetch(new URL("/bin/coder-darwin-arm64.asc", server.url))).status).toBe(404);
  });
});

describe("pages that the extension opens", () => {
  test("[WK-32] redirect to the workspace, its schedule or its builds, or to the list if it is missing", async () => {
    await using world = await openWorld();
    const { template_id } = await seedTemplate(world.server, ECHO);
    const { id } = await createWorkspace(world.admin, template_id);
    const getRedirect = async (path: string, client = world.admin) => {
      const response = await client.fetch("GET", path);
      return [response.status, response.headers.get("location")];
    };
    expect(await getRedirect("/@admin/dev")).toEqual([307, `/workspaces/${id}`]);
    expect(await getRedirect("/@Admin/Dev")).toEqual([307, `/workspaces/${id}`]);
    expect(await getRedirect("/@admin/dev/settings")).toEqual([307, `/workspaces/${id}/schedule`]);
    expect(await getRedirect("/@admin/dev/settings/parameters")).toEqual([307, `/workspaces/${id}/schedule`]);
    expect(await getRedirect("/@admin/dev/builds/1")).toEqual([307, `/workspaces/${id}/builds`]);
    expect(await getRedirect("/@admin/none")).toEqual([307, "/workspaces"]);
    expect(await getRedirect("/tasks/admin/none")).toEqual([307, "/tasks"]);
    const outsider = new Client(world.server.url);
    expect(await getRedirect("/@admin/dev", outsider)).toEqual([307, "/login?redirect=%2F%40admin%2Fdev"]);
    expect(await getRedirect("/tasks/admin/x", outsider)).toEqual([307, "/login?redirect=%2Ftasks%2Fadmin%2Fx"]);
    // Apps keep their paths.
    expect((await getRedirect("/@admin/dev.dev/apps/none/"))[0]).toBe(404);
    expect((await getRedirect("/@admin/dev/other"))[0]).toBe(404);
    // Another user's workspace is indistinguishable from a missing one.
    await world.admin.post("/api/v2/users", { email: "sam@example.com", username: "sam", password: ADMIN.password });
    const sam = await new Client(world.server.url).signIn("sam@example.com", ADMIN.password);
    expect(await getRedirect("/@admin/dev", sam)).toEqual([307, "/workspaces"]);
  });

  test("[WK-32] redirect a task to its chat or its workspace", async () => {
    await using world = await openWorld();
    const { template_id } = await seedTemplate(world.server, ECHO);
    const template = await world.admin.get<{ active_version_id: string }>(`/api/v2/templates/${template_id}`);
    const task = await world.admin.post<{ id: string; name: string; workspace_id: { uuid: string } | string }>(
      "/api/v2/tasks/me",
      { input: "say hello", template_version_id: template.active_version_id },
    );
    const response = await world.admin.fetch("GET", `/tasks/admin/${task.id}`);
    expect([response.status, response.headers.get("location")]).toEqual([
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
  const createPluginClient = async ({ server, admin }: World, scopes = SCOPES): Promise<Client> => {
    const { key } = await admin.post<{ key: string }>("/api/v2/users/me/keys/tokens", {
      scopes,
      lifetime: 3_600_000_000_000,
    } as never);
    return new Client(server.url, key);
  };

  test("[ID-21] can list what the extension shows; the tasks panel gets the name of the missing scope", async () => {
    await using world = await openWorld();
    const pluginClient = await createPluginClient(world);
    for (const path of [
      "users/me",
      "workspaces?q=owner:me",
      "templates",
      "deployment/ssh",
      "buildinfo",
      "appearance",
      "experiments",
    ]) {
      expect([path, (await pluginClient.fetch("GET", `/api/v2/${path}`)).status]).toEqual([path, 200]);
    }
    const rejected = await pluginClient.fetch("GET", "/api/v2/tasks?q=owner:me");
    const body = (await rejected.json()) as { detail: string };
    expect([rejected.status, body.detail]).toEqual([403, expect.stringContaining("task:read")]);
  });

  test("[ID-29] can restart a workspace only to update its template version", async () => {
    await using world = await openWorld();
    const { template_id, version_id } = await seedTemplate(world.server, ECHO);
    const { id } = await createWorkspace(world.admin, template_id);
    await awaitBuild(world.admin, id);
    const restart = async (client: Client, body: object) => {
      const response = await client.fetch("POST", `/api/v2/workspaces/${id}/restart`, body);
      return [response.status, ((await response.json()) as { detail?: string }).detail];
    };
    const pluginClient = await createPluginClient(world);
    expect(await restart(pluginClient, {})).toEqual([403, expect.stringContaining("workspace:stop")]);
    const version = { template_version_id: version_id };
    const startOnlyClient = await createPluginClient(world, ["workspace:start", "workspace:read"]);
    expect(await restart(startOnlyClient, version)).toEqual([403, expect.stringContaining("workspace:stop")]);
    const updateOnlyClient = await createPluginClient(world, ["workspace:update", "workspace:read"]);
    expect(await restart(updateOnlyClient, version)).toEqual([403, expect.stringContaining("workspace:start")]);
    expect((await restart(pluginClient, version))[0]).toBe(201);
    const hasRestarted = ({ latest_build: { build_number, status } }: Workspace) =>
      build_number === 3 && status === "running";
    expect(hasRestarted(await awaitWorkspace(world.admin, id, hasRestarted))).toBe(true);
  });
});
