// A stopped workspace starts once when people connect to it, and never because of background requests.
import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sha256, uuid } from "#base/ids.ts";
import { wakeWorkspace } from "#domain/builds/wake.ts";
import { loadCaller } from "#domain/users/as-caller.ts";
import type { UserPreferences } from "#schema/users/quiet-hours.ts";
import type { Build } from "#schema/workspaces/build.ts";
import type { WakeLevel } from "#schema/workspaces/wake.ts";
import { forFile } from "#test/support/for-file.ts";
import { getContext } from "#test/support/seed.ts";
import { until } from "#test/support/until.ts";
import { awaitBuild, createBuild } from "#test/support/workspaces.ts";
import { startAgentProcess } from "../agents/reach.ts";
import type { CallerName } from "../workspaces/shared-workspace.ts";
import { startAppWorld } from "./app-world.ts";

const world = await forFile(
  startAppWorld({
    apps: (port) =>
      (["owner", "public"] as const).map((share) => ({ slug: share, url: `http://localhost:${port}`, share })),
  }),
);
const { shared, owner } = world;
const NAVIGATION_HEADERS = {
  accept: "text/html",
  "sec-fetch-mode": "navigate",
  "sec-fetch-dest": "document",
  "sec-fetch-site": "none",
  "sec-fetch-user": "?1",
};
const WAIT_PARAMETER = "service_app_wait";

const getLatestBuild = async (): Promise<Build> => (await owner.get<{ latest_build: Build }>(shared.path)).latest_build;
const stopWorkspace = async (): Promise<Build> => {
  if ((await getLatestBuild()).transition !== "stop") await createBuild(owner, shared.id, "stop");
  return (await awaitBuild(owner, shared.id)).latest_build;
};
const openApp = (
  app: string,
  caller: CallerName = "owner",
  headers: Record<string, string> = NAVIGATION_HEADERS,
  path = "/x?y=1",
) => world.at(app, path, { token: shared.clients[caller].token, headers });
const setWakeLevel = (wake_on_connect: WakeLevel) =>
  shared.clients["site owner"].patch(`/api/v2/templates/${shared.template_id}`, { wake_on_connect });
const wakeAs = (caller: CallerName) => shared.clients[caller].fetch("POST", `${shared.path}/wake`, {});

describe("opening an app of a stopped workspace", () => {
  test("[WO-1] [WO-2] [WO-5] starts it once for a hundred requests, shows the progress, and continues to the app", async () => {
    const before = await stopWorkspace();
    const responses = await Promise.all(Array.from({ length: 100 }, () => openApp("owner")));
    const build = (await awaitBuild(owner, shared.id)).latest_build;
    expect(build).toMatchObject({ build_number: before.build_number + 1, transition: "start", reason: "dashboard" });
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([307]));
    const waitPath = responses[0]?.headers.get("location") ?? "";
    expect(waitPath).toBe(`/x?y=1&${WAIT_PARAMETER}=${build.id}`);
    const waitResponse = await openApp("owner", "owner", NAVIGATION_HEADERS, waitPath);
    expect(waitResponse.status).toBe(503);
    const page = await waitResponse.text();
    expect(page).toContain("<h1>Starting dev</h1>");
    expect(page).toContain('<li class="now" aria-current="step">Connect to its agent</li>');
    expect(page).toContain('<meta http-equiv="refresh" content="2">');

    const token = uuid();
    const { store } = getContext(world.server);
    const agent_id = build.resources[0]?.agents[0]?.id as string;
    await store.commit([{ sql: "update agents set token_hash = ? where id = ?", rows: [[sha256(token), agent_id]] }]);
    const home = mkdtempSync(join(tmpdir(), "slipway-home-"));
    await using _daemon = await startAgentProcess(world.server, { agent_id, agent_token: token }, home);
    await using _home = { [Symbol.asyncDispose]: async () => rmSync(home, { recursive: true, force: true }) };
    const redirect = await until(async () => {
      const response = await openApp("owner", "owner", NAVIGATION_HEADERS, waitPath);
      return response.status === 307 ? response : undefined;
    });
    expect(redirect.headers.get("location")).toBe("/x?y=1");
    const response = await openApp("owner");
    expect([response.status, ((await response.json()) as { path: string }).path]).toEqual([200, "/x?y=1"]);
  });

  test("[WO-3] starts it only for a person, not for background requests", async () => {
    const { id } = await stopWorkspace();
    const backgroundHeaders: Record<string, string>[] = [
      { accept: "*/*" },
      { ...NAVIGATION_HEADERS, "sec-fetch-mode": "no-cors", "sec-fetch-dest": "empty" },
      { accept: "image/*", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image" },
      { ...NAVIGATION_HEADERS, "sec-purpose": "prefetch;prerender" },
      { ...NAVIGATION_HEADERS, purpose: "prefetch" },
      { ...NAVIGATION_HEADERS, "sec-fetch-dest": "iframe", "sec-fetch-user": "" },
      // A page that reloads itself, as with development servers.
      { ...NAVIGATION_HEADERS, "sec-fetch-site": "same-origin", "sec-fetch-user": "" },
    ];
    for (const headers of backgroundHeaders) {
      expect([headers, (await openApp("owner", "owner", headers)).status]).toEqual([headers, 503]);
    }
    for (const method of ["HEAD", "POST"]) {
      const response = await world.at("owner", "/", { method, token: world.token, headers: NAVIGATION_HEADERS });
      expect([method, response.status]).toEqual([method, 503]);
    }
    expect((await getLatestBuild()).id).toBe(id);
  });

  test("[WO-4] starts it for people who may start it, and for visitors of a public app only if the template allows it", async () => {
    const { id } = await stopWorkspace();
    for (const caller of ["shared use", "member", "guest"] as const) await openApp("public", caller);
    expect((await getLatestBuild()).id).toBe(id);
    await setWakeLevel("public");
    expect((await openApp("owner", "guest")).headers.get("location")).toContain("/auth-redirect");
    expect((await getLatestBuild()).id).toBe(id);
    const visitResponse = await openApp("public", "guest");
    const build = await getLatestBuild();
    expect(build).toMatchObject({ transition: "start", initiator_name: "ada" });
    expect(visitResponse.headers.get("location")).toBe(`/x?y=1&${WAIT_PARAMETER}=${build.id}`);
    await setWakeLevel("people");
    await awaitBuild(owner, shared.id);
    await stopWorkspace();
    expect((await openApp("owner", "shared admin")).status).toBe(307);
    expect((await awaitBuild(owner, shared.id)).latest_build.initiator_name).toBe("amy");
  });

  test("[WO-6] does not start it again from a waiting page until a person presses the button", async () => {
    await stopWorkspace();
    const waitPath = (await openApp("owner")).headers.get("location") ?? "";
    await awaitBuild(owner, shared.id);
    const { id } = await stopWorkspace();
    const { "sec-fetch-user": _, ...reloadHeaders } = { ...NAVIGATION_HEADERS, "sec-fetch-site": "same-origin" };
    const response = await openApp("owner", "owner", reloadHeaders, waitPath);
    expect([response.status, (await getLatestBuild()).id]).toEqual([503, id]);
    expect(await response.text()).toContain('<a href="/x?y=1">Start</a>');
    // A page that waits for the end of a stop was also opened by a person.
    expect((await openApp("owner", "owner", reloadHeaders, `/x?${WAIT_PARAMETER}=${id}`)).status).toBe(307);
    expect((await awaitBuild(owner, shared.id)).latest_build.status).toBe("running");
  });

  test("[WO-7] does not start it against the template or the user's preference, or while it is dormant", async () => {
    const { id } = await stopWorkspace();
    await setWakeLevel("off");
    expect(await (await openApp("owner")).text()).toContain("does not start workspaces on connect");
    expect((await wakeAs("owner")).status).toBe(409);
    await setWakeLevel("people");
    const preferences = await owner.get<UserPreferences>("/api/v2/users/me/preferences");
    expect(preferences.wake_on_connect).toBe(true);
    await owner.put("/api/v2/users/me/preferences", { ...preferences, wake_on_connect: false });
    expect(await (await openApp("owner")).text()).toContain("your preferences");
    await owner.put("/api/v2/users/me/preferences", preferences);
    await owner.put(`${shared.path}/dormant`, { dormant: true });
    expect((await openApp("owner")).status).toBe(503);
    expect((await wakeAs("owner")).status).toBe(409);
    await owner.put(`${shared.path}/dormant`, { dormant: false });
    expect((await getLatestBuild()).id).toBe(id);
  });

  test("[WO-1] [WO-4] has the same effect as POST wake, which requires permission and starts it once", async () => {
    await stopWorkspace();
    for (const caller of ["shared use", "auditor", "member"] as const) {
      expect([caller, (await wakeAs(caller)).status]).toEqual([caller, caller === "shared use" ? 403 : 404]);
    }
    const builds = await Promise.all(
      Array.from({ length: 20 }, async () => (await (await wakeAs("owner")).json()) as Build),
    );
    const { latest_build } = await awaitBuild(owner, shared.id);
    expect(new Set(builds.map(({ id }) => id))).toEqual(new Set([latest_build.id]));
    const running = (await (await wakeAs("owner")).json()) as Build;
    expect([running.id, running.status]).toEqual([latest_build.id, "running"]);
  });

  test("[WO-1] creates one build if chats and callers on several nodes start it together", async () => {
    await stopWorkspace();
    const context = getContext(world.server);
    const caller = await loadCaller(context.store, (await owner.get<{ id: string }>("/api/v2/users/me")).id);
    // Nodes share the workspace's actor and the database, but not their pending wakes.
    const nodes = Array.from(
      { length: 3 },
      () => Object.create(context, { wakes: { value: new Map() } }) as typeof context,
    );
    const results = await Promise.all(
      Array.from({ length: 100 }, (_, n) => wakeWorkspace(nodes[n % 3] as typeof context, shared.id, { caller })),
    );
    const { latest_build } = await awaitBuild(owner, shared.id);
    expect(new Set(results.map(({ build_id }) => build_id))).toEqual(new Set([latest_build.id]));
    expect(nodes.map(({ wakes }) => wakes.size)).toEqual([0, 0, 0]);
  });
});
