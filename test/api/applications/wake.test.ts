// A stopped workspace starts when a person connects to it, once for concurrent requests, and never for background requests.
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
const OPENS = {
  accept: "text/html",
  "sec-fetch-mode": "navigate",
  "sec-fetch-dest": "document",
  "sec-fetch-site": "none",
  "sec-fetch-user": "?1",
};
const WAIT_PARAMETER = "service_app_wait";

const getLatestBuild = async (): Promise<Build> => (await owner.get<{ latest_build: Build }>(shared.path)).latest_build;
const stop = async (): Promise<Build> => {
  if ((await getLatestBuild()).transition !== "stop") await createBuild(owner, shared.id, "stop");
  return (await awaitBuild(owner, shared.id)).latest_build;
};
const open = (app: string, who: CallerName = "owner", headers: Record<string, string> = OPENS, path = "/x?y=1") =>
  world.at(app, path, { token: shared.clients[who].token, headers });
const allow = (wake_on_connect: WakeLevel) =>
  shared.clients["site owner"].patch(`/api/v2/templates/${shared.template_id}`, { wake_on_connect });
const wake = (who: CallerName) => shared.clients[who].fetch("POST", `${shared.path}/wake`, {});

describe("opening an app of a stopped workspace", () => {
  test("[WO-1] [WO-2] [WO-5] starts it once for a hundred people, shows its progress, and continues into the app", async () => {
    const before = await stop();
    const answers = await Promise.all(Array.from({ length: 100 }, () => open("owner")));
    const build = (await awaitBuild(owner, shared.id)).latest_build;
    expect(build).toMatchObject({ build_number: before.build_number + 1, transition: "start", reason: "dashboard" });
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([307]));
    const where = answers[0]?.headers.get("location") ?? "";
    expect(where).toBe(`/x?y=1&${WAIT_PARAMETER}=${build.id}`);
    const waiting = await open("owner", "owner", OPENS, where);
    expect(waiting.status).toBe(503);
    const page = await waiting.text();
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
    const on = await until(async () => {
      const next = await open("owner", "owner", OPENS, where);
      return next.status === 307 ? next : undefined;
    });
    expect(on.headers.get("location")).toBe("/x?y=1");
    const response = await open("owner");
    expect([response.status, ((await response.json()) as { path: string }).path]).toEqual([200, "/x?y=1"]);
  });

  test("[WO-3] requires a person: nothing in the background starts it", async () => {
    const { id } = await stop();
    const background: Record<string, string>[] = [
      { accept: "*/*" },
      { ...OPENS, "sec-fetch-mode": "no-cors", "sec-fetch-dest": "empty" },
      { accept: "image/*", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image" },
      { ...OPENS, "sec-purpose": "prefetch;prerender" },
      { ...OPENS, purpose: "prefetch" },
      { ...OPENS, "sec-fetch-dest": "iframe", "sec-fetch-user": "" },
      // A page that reloads itself, as with development servers.
      { ...OPENS, "sec-fetch-site": "same-origin", "sec-fetch-user": "" },
    ];
    for (const headers of background) {
      expect([headers, (await open("owner", "owner", headers)).status]).toEqual([headers, 503]);
    }
    for (const method of ["HEAD", "POST"]) {
      const answer = await world.at("owner", "/", { method, token: world.token, headers: OPENS });
      expect([method, answer.status]).toEqual([method, 503]);
    }
    expect((await getLatestBuild()).id).toBe(id);
  });

  test("[WO-4] requires permission to start the workspace; visitors of a public app start it only if the template says so", async () => {
    const { id } = await stop();
    for (const who of ["shared use", "member", "guest"] as const) await open("public", who);
    expect((await getLatestBuild()).id).toBe(id);
    await allow("public");
    expect((await open("owner", "guest")).headers.get("location")).toContain("/auth-redirect");
    expect((await getLatestBuild()).id).toBe(id);
    const visit = await open("public", "guest");
    const build = await getLatestBuild();
    expect(build).toMatchObject({ transition: "start", initiator_name: "ada" });
    expect(visit.headers.get("location")).toBe(`/x?y=1&${WAIT_PARAMETER}=${build.id}`);
    await allow("people");
    await awaitBuild(owner, shared.id);
    await stop();
    expect((await open("owner", "shared admin")).status).toBe(307);
    expect((await awaitBuild(owner, shared.id)).latest_build.initiator_name).toBe("amy");
  });

  test("[WO-6] a waiting page starts nothing again: stopped in the meantime, the workspace stays stopped until the button is pressed", async () => {
    await stop();
    const where = (await open("owner")).headers.get("location") ?? "";
    await awaitBuild(owner, shared.id);
    const { id } = await stop();
    const { "sec-fetch-user": _, ...again } = { ...OPENS, "sec-fetch-site": "same-origin" };
    const answer = await open("owner", "owner", again, where);
    expect([answer.status, (await getLatestBuild()).id]).toEqual([503, id]);
    expect(await answer.text()).toContain('<a href="/x?y=1">Start</a>');
    // A request that waits for the stop to end was also made by a person.
    expect((await open("owner", "owner", again, `/x?${WAIT_PARAMETER}=${id}`)).status).toBe(307);
    expect((await awaitBuild(owner, shared.id)).latest_build.status).toBe("running");
  });

  test("[WO-7] a workspace is not started against its template, against the user's preference, or while dormant", async () => {
    const { id } = await stop();
    await allow("off");
    expect(await (await open("owner")).text()).toContain("does not start workspaces on connect");
    expect((await wake("owner")).status).toBe(409);
    await allow("people");
    const preferences = await owner.get<UserPreferences>("/api/v2/users/me/preferences");
    expect(preferences.wake_on_connect).toBe(true);
    await owner.put("/api/v2/users/me/preferences", { ...preferences, wake_on_connect: false });
    expect(await (await open("owner")).text()).toContain("your preferences");
    await owner.put("/api/v2/users/me/preferences", preferences);
    await owner.put(`${shared.path}/dormant`, { dormant: true });
    expect((await open("owner")).status).toBe(503);
    expect((await wake("owner")).status).toBe(409);
    await owner.put(`${shared.path}/dormant`, { dormant: false });
    expect((await getLatestBuild()).id).toBe(id);
  });

  test("[WO-1] [WO-4] programs start it by POST wake, once for all of them; people without permission are refused", async () => {
    await stop();
    for (const who of ["shared use", "auditor", "member"] as const) {
      expect([who, (await wake(who)).status]).toEqual([who, who === "shared use" ? 403 : 404]);
    }
    const builds = await Promise.all(
      Array.from({ length: 20 }, async () => (await (await wake("owner")).json()) as Build),
    );
    const { latest_build } = await awaitBuild(owner, shared.id);
    expect(new Set(builds.map(({ id }) => id))).toEqual(new Set([latest_build.id]));
    const running = (await (await wake("owner")).json()) as Build;
    expect([running.id, running.status]).toEqual([latest_build.id, "running"]);
  });

  test("[WO-1] chats and callers on several nodes that each plan a start get one build", async () => {
    await stop();
    const ctx = getContext(world.server);
    const caller = await loadCaller(ctx.store, (await owner.get<{ id: string }>("/api/v2/users/me")).id);
    // Nodes share the workspace's actor and the database, but not each other's pending wakes.
    const nodes = Array.from({ length: 3 }, () => Object.create(ctx, { wakes: { value: new Map() } }) as typeof ctx);
    const woken = await Promise.all(
      Array.from({ length: 100 }, (_, n) => wakeWorkspace(nodes[n % 3] as typeof ctx, shared.id, { caller })),
    );
    const { latest_build } = await awaitBuild(owner, shared.id);
    expect(new Set(woken.map(({ build_id }) => build_id))).toEqual(new Set([latest_build.id]));
    expect(nodes.map(({ wakes }) => wakes.size)).toEqual([0, 0, 0]);
  });
});
