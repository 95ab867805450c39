// Acknowledged changes are on disk: the kernel saw write, flush and response, in this order, for every changing route, for single calls and
// for groups of calls (RELIABILITY check 4).
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Build } from "#schema/workspaces/build.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import type { Client } from "#src/client.ts";
import { randomFrom } from "#test/support/random.ts";
import { until } from "#test/support/until.ts";
import { MANIFESTS } from "./oracle/build-load.ts";
import { ServerSlot } from "./server.ts";
import { assertNoProblems } from "./server-crash.ts";
import { parseResponses, type TracedResponse, traceCommand } from "./server-trace.ts";
import { makeAgents, makeTemplate, makeWriters, signInAdmin, type World, waitForBuild } from "./server-world.ts";
import type { Check, CheckOptions } from "./store/store-crash.ts";
import { powerSkipReason } from "./store/store-power.ts";

const MUTATING = /^(POST|PUT|PATCH|DELETE) /;

/** A request that separates the two parts in the trace. */
const SEPARATOR = "/border";

/** Routes that may succeed without writing anything. */
const MAY_WRITE_NOTHING = new Set(["POST /api/v2/users/validate-password"]);

/** Changes at least one object of each kind through the API. */
const changeEverything = async (world: World): Promise<void> => {
  const { admin, organization_id } = world;
  const ada = await admin.post<{ id: string }>("/api/v2/users", {
    email: "ada@example.com",
    username: "ada",
    password: "a-long-enough-passphrase",
    organization_ids: [organization_id],
  });
  await admin.put(`/api/v2/users/${ada.id}/profile`, { username: "ada", name: "Ada" });
  await admin.put(`/api/v2/users/${ada.id}/roles`, { roles: ["template-admin"] });
  await admin.put(`/api/v2/users/${ada.id}/password`, { password: "another-long-passphrase" });
  const adaClient = await admin.signIn("ada@example.com", "another-long-passphrase");
  await changeOrganization(admin, ada.id);
  await changeKeys(adaClient);
  await adaClient.post<unknown>("/api/v2/users/logout", {});
  await admin.put<unknown>(`/api/v2/users/${ada.id}/status/suspend`, {});
  await admin.put<unknown>(`/api/v2/users/${ada.id}/status/activate`, {});
  await admin.delete(`/api/v2/users/${ada.id}`);
  await changeTemplate(world);
  const [agent] = await makeAgents(world, "flushed", 1);
  if (!agent) throw new Error("no agent was made");
  await agent.client.post("/api/v2/workspaceagents/me/log-source", {
    id: crypto.randomUUID(),
    display_name: "Lines",
    icon: "",
  });
  await agent.client.patch("/api/v2/workspaceagents/me/logs", { logs: [{ output: "a line" }] });
  const path = `/api/v2/workspaces/${agent.workspace_id}/builds`;
  for (const transition of ["stop", "start", "delete"]) {
    await waitForBuild(admin, (await admin.post<{ id: string }>(path, { transition })).id);
  }
};

const changeKeys = async (user: Client): Promise<void> => {
  const { key } = await user.post<{ key: string }>("/api/v2/users/me/keys/tokens", { token_name: "one", lifetime: 0 });
  await user.post<unknown>("/api/v2/users/me/keys", {});
  const path = `/api/v2/users/me/keys/${key.split("-")[0]}`;
  await user.put(`${path}/expire`, {});
  await user.delete(path);
};

const changeTemplate = async (world: World): Promise<void> => {
  const { admin, organization_id } = world;
  const hangs = await makeTemplate(world, "hangs", MANIFESTS.hangs);
  const { active_version_id } = await admin.get<{ active_version_id: string }>(`/api/v2/templates/${hangs}`);
  await admin.patch(`/api/v2/templates/${hangs}`, { display_name: "It hangs" });
  await admin.patch(`/api/v2/templateversions/${active_version_id}`, { name: "first", message: "The first" });
  await admin.patch(`/api/v2/templates/${hangs}/versions`, { id: active_version_id });
  const path = `/api/v2/organizations/${organization_id}/members/me/workspaces`;
  const created = await admin.post<Workspace>(path, { name: "hangs", template_id: hangs });
  await admin.patch<unknown>(`/api/v2/workspacebuilds/${created.latest_build.id}/cancel`, {});
  await waitForBuild(admin, created.latest_build.id);
  const removal = await admin.post<Build>(`/api/v2/workspaces/${created.id}/builds`, { transition: "delete" });
  await waitForBuild(admin, removal.id);
  await admin.delete(`/api/v2/templates/${hangs}`);
};

const changeOrganization = async (admin: Client, user: string): Promise<void> => {
  const { id } = await admin.post<{ id: string }>("/api/v2/organizations", { name: "second", display_name: "Second" });
  await admin.patch(`/api/v2/organizations/${id}`, { display_name: "The second" });
  await admin.post<unknown>(`/api/v2/organizations/${id}/members/${user}`, {});
  await admin.put(`/api/v2/organizations/${id}/members/${user}/roles`, { roles: [] });
  await admin.delete(`/api/v2/organizations/${id}/members/${user}`);
  await admin.delete(`/api/v2/organizations/${id}`);
};

/** Returns problems with these responses. `isAlone`: each request had its own flush. */
const findProblems = (responses: readonly TracedResponse[], isAlone: boolean): string[] =>
  responses.flatMap(({ request, status, writes, flushes, fileFlushes, unflushed }) => {
    if (!MUTATING.test(request) || status >= 300) return [];
    if (unflushed > 0) return [`${request} was answered ${status} with ${unflushed} writes that were not flushed`];
    if (!isAlone || MAY_WRITE_NOTHING.has(request)) return [];
    if (writes === 0 || flushes === 0)
      return [`${request} was answered ${status} after ${writes} writes, ${flushes} flushes`];
    const isUpload = request === "POST /api/v2/files";
    return isUpload && fileFlushes < 2 ? ["an upload was answered before its bytes and its name were flushed"] : [];
  });

/** Checks one call of each kind, then `rounds` hundred batches of many concurrent writers. */
export const serverFlush = async ({ rounds, seed, log }: CheckOptions): Promise<string> => {
  await using place = await ServerSlot.make();
  const file = join(place.scratch, "trace.txt");
  await place.start({ commandPrefix: traceCommand(file) });
  const world = await signInAdmin(place);
  await changeEverything(world);
  const documented = await place.client.get<{ paths: Record<string, object> }>("/swagger/json");
  const agents = await makeAgents(world, "group", 6);
  let remaining = rounds * 100;
  await place.client.fetch("GET", SEPARATOR);
  const writers = await makeWriters(agents, randomFrom(seed), () => {
    remaining -= 1;
    if (remaining <= 0) for (const writer of writers) writer.stop();
  });
  await Promise.all(writers.map((writer) => writer.run()));
  await place.stop();
  // strace still writes for a moment after the server has ended.
  await until(async () => /^\d+ +\+\+\+ exited with 0 \+\+\+\n$/m.test(readFileSync(file, "utf8").slice(-100)));
  const responses = parseResponses(readFileSync(file, "utf8"));
  const borderIndex = responses.findIndex(({ request }) => request === `GET ${SEPARATOR}`);
  const [single, grouped] = [responses.slice(0, borderIndex), responses.slice(borderIndex + 1)];
  const isComplete = borderIndex > 0 && grouped.length >= rounds * 100;
  assertNoProblems(seed, "the trace", isComplete ? [] : [`only ${responses.length} responses were traced`]);
  assertNoProblems(seed, "one call after the other", findProblems(single, true));
  assertNoProblems(seed, "many writers", findProblems(grouped, false));
  const routes = new Set(single.filter(({ request }) => MUTATING.test(request)).map(({ request }) => toRoute(request)));
  for (const missing of listUntestedRoutes(documented.paths, routes)) log(`not tried: ${missing}`);
  return `${routes.size} routes with single calls and ${grouped.length} responses to concurrent writers: each after its flush`;
};

const toRoute = (request: string): string =>
  request
    .replace(/\/keys\/(?!tokens)[^/]+/, "/keys/{}")
    .replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, "{}")
    .replace(/\/(me|suspend|activate)(?=\/|$)/g, "/{}");

const listUntestedRoutes = (paths: Record<string, object>, testedRoutes: ReadonlySet<string>): string[] =>
  Object.entries(paths)
    .flatMap(([path, methods]) => Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`))
    .filter((route) => MUTATING.test(route))
    .filter((route) => !testedRoutes.has(route.replace(/\/me(?=\/)/g, "/{}").replace(/\{[^}]*\}/g, "{}")));

export const checks: readonly Check[] =
  powerSkipReason() === "" ? [{ name: "server: flushed, then answered", run: serverFlush }] : [];
