// The status of each workspace and port-sharing endpoint for each caller: a table, which SLIPWAY_REPORT=1 prints as observed. Every cell is
// tested on a workspace of ada that is shared with amy (admin) and uma (use).
import { afterAll, beforeAll, expect, test } from "bun:test";
import { fetchDocument, listOperations } from "#test/fuzz/operations.ts";
import { CALLERS, type CallerName, openCast } from "./cast.ts";

type Cast = Awaited<ReturnType<typeof openCast>>;
type Row = {
  readonly rule: string;
  readonly call: (cast: Cast, who: CallerName) => readonly [method: string, path: string, body?: unknown];
  /** Statuses in the order of CALLERS, agent last. */
  readonly statuses: string;
  /** The call as written in the specification. */
  readonly name: string;
};

let cast: Cast;
const seen: string[] = [];
beforeAll(async () => {
  cast = await openCast();
});
afterAll(async () => {
  await cast[Symbol.asyncDispose]();
  if (Bun.env.SLIPWAY_REPORT !== undefined) process.stdout.write(`\n${report()}\n`);
});

/** Returns endpoints by caller with the observed status. */
const report = (): string => {
  const rows = [["", ...CALLERS], ...seen.map((line) => line.split("|"))];
  const widths = rows[0]?.map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0))) ?? [];
  return rows.map((row) => row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join("  ")).join("\n");
};

const W = "/api/v2/workspaces";
const OURS = /^\/api\/v2\/(workspaces|workspacebuilds|users\/\{user\}\/workspace|organizations\/.*\/workspaces)/;
const share = { agent_name: "dev", port: 8080, protocol: "http", share_level: "owner" };
const callTo =
  (suffix: string, method = "GET", body?: unknown) =>
  (one: Cast) =>
    [method, `${one.path}${suffix}`, body] as const;
const to =
  (path: string, method = "GET", body?: unknown) =>
  () =>
    [method, path, body] as const;

const build =
  (suffix: string, method = "GET", body?: unknown) =>
  (one: Cast) =>
    [method, `/api/v2/workspacebuilds/${one.workspace.latest_build.id}${suffix}`, body] as const;
/** The ID of no snapshot. */
const UNKNOWN_ID = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";
const getAgentId = ({ workspace }: Cast): string => workspace.latest_build.resources[0]?.agents[0]?.id ?? "";

const create = (path: string, prefix: string) => (one: Cast, who: CallerName) =>
  ["POST", path, { name: `${prefix}-${who.replace(" ", "-")}`, template_id: one.template_id }] as const;

// Forbidden operations return 403 to callers who can see the workspace, and 404 to others. Columns: guest, owner, shared admin, shared use,
// member, template admin, organization admin, auditor, site owner, agent
const READ = "401 200 200 200 404 200 200 404 200 401";
const CHANGE = "401 204 204 403 404 204 204 404 204 401";
/** The workspace's agent is also allowed. */
const CHANGE_OR_AGENT = CHANGE.replace(/401$/, "204");
const OWN = "401 204 403 403 404 403 403 404 403 401";
const SHARE = "401 204 403 403 404 403 403 404 204 401";

// biome-ignore format: a table
const TABLE: Row[] = [
  { rule: "WC-7", name: "POST users/me/workspaces", call: create("/api/v2/users/me/workspaces", "own"), statuses: "401 200 200 200 200 200 200 200 200 401" },
  { rule: "WC-7", name: "POST organizations/{o}/members/ada/workspaces", call: create("/api/v2/organizations/default/members/ada/workspaces", "for"),
    statuses: "401 200 404 404 404 403 200 403 200 401" },
  { rule: "WC-7", name: "POST users/ada/workspaces", call: create("/api/v2/users/ada/workspaces", "by"),
    statuses: "401 200 404 404 404 403 200 403 200 401" },
  { rule: "WC-7", name: "GET workspaces", call: to(W), statuses: "401 200 200 200 200 200 200 200 200 401" },
  { rule: "WC-7", name: "GET workspaces/watch", call: to(`${W}/watch`), statuses: "401 200 200 200 200 200 200 200 200 401" },
  { rule: "WC-7", name: "GET workspaces/{w}", call: callTo(""), statuses: READ },
  { rule: "WC-7", name: "GET users/{u}/workspace/{name}", call: to("/api/v2/users/ada/workspace/dev"), statuses: READ },
  { rule: "WC-7", name: "GET users/{u}/workspace/{name}?include_deleted", call: to("/api/v2/users/ada/workspace/dev?include_deleted=true"), statuses: READ },
  { rule: "WC-7", name: "GET users/{u}/workspace/{name}/builds/{n}", call: to("/api/v2/users/ada/workspace/dev/builds/1"), statuses: READ },
  { rule: "WC-7", name: "GET workspaces/{w}/builds", call: callTo("/builds"), statuses: READ },
  { rule: "WC-4", name: "GET workspaces/{w}/timings", call: callTo("/timings"), statuses: READ },
  { rule: "WC-3", name: "GET workspaces/{w}/resolve-autostart", call: callTo("/resolve-autostart"), statuses: READ },
  { rule: "SH-1", name: "GET workspaces/{w}/acl", call: callTo("/acl"), statuses: READ },
  { rule: "SH-8", name: "GET workspaces/{w}/port-share", call: callTo("/port-share"), statuses: READ },
  { rule: "WC-7", name: "GET workspaces/{w}/watch", call: callTo("/watch"), statuses: READ },
  // Without an upgrade: 400 says that one is required.
  { rule: "WC-7", name: "GET workspaces/{w}/watch-ws", call: callTo("/watch-ws"), statuses: READ.replaceAll("200", "400") },
  { rule: "WC-7", name: "PUT workspaces/{w}/favorite", call: callTo("/favorite", "PUT"), statuses: OWN },
  { rule: "WC-7", name: "DELETE workspaces/{w}/favorite", call: callTo("/favorite", "DELETE"), statuses: OWN },
  { rule: "WC-1", name: "PATCH workspaces/{w}", call: callTo("", "PATCH", { name: "dev" }), statuses: CHANGE },
  { rule: "WC-2", name: "PUT workspaces/{w}/autoupdates", call: callTo("/autoupdates", "PUT", { automatic_updates: "never" }), statuses: CHANGE },
  { rule: "TI-13", name: "GET workspaces/{w}/activity", call: callTo("/activity"), statuses: READ },
  { rule: "WC-5", name: "POST workspaces/{w}/usage", call: callTo("/usage", "POST"), statuses: CHANGE_OR_AGENT },
  { rule: "WC-5", name: "POST workspaces/{w}/usage (of an app)", call: (one) => ["POST", `${one.path}/usage`, { agent_id: getAgentId(one), app_name: "ssh" }], statuses: CHANGE_OR_AGENT },
  { rule: "WC-7", name: "PUT workspaces/{w}/ttl", call: callTo("/ttl", "PUT", { ttl_ms: null }), statuses: CHANGE },
  { rule: "WC-7", name: "PUT workspaces/{w}/autostart", call: callTo("/autostart", "PUT", { schedule: null }), statuses: CHANGE },
  { rule: "WC-7", name: "PUT workspaces/{w}/dormant", call: callTo("/dormant", "PUT", { dormant: false }), statuses: CHANGE.replaceAll("204", "200") },
  // It has no deadline: 409 for everyone allowed. An agent is allowed for its own workspace.
  { rule: "WC-7", name: "PUT workspaces/{w}/extend", call: callTo("/extend", "PUT", { deadline: "2040-01-01T00:00:00Z" }),
    statuses: "401 409 409 403 404 409 409 404 409 409" },
  { rule: "SH-2", name: "PATCH workspaces/{w}/acl", call: callTo("/acl", "PATCH", { user_roles: {} }), statuses: SHARE },
  { rule: "SH-8", name: "POST workspaces/{w}/port-share", call: callTo("/port-share", "POST", share), statuses: "401 200 200 403 404 403 403 404 200 401" },
  { rule: "SH-8", name: "DELETE workspaces/{w}/port-share", call: callTo("/port-share", "DELETE", { agent_name: "dev", port: 9 }), statuses: CHANGE.replaceAll("204", "404") },
  { rule: "WC-6", name: "GET .../members/me/workspaces/available-users",
    call: to("/api/v2/organizations/default/members/me/workspaces/available-users"), statuses: "401 403 403 403 403 403 200 403 200 401" },
  { rule: "BD-3", name: "GET workspacebuilds/{b}", call: build(""), statuses: READ },
  { rule: "BD-3", name: "GET workspacebuilds/{b}/logs", call: build("/logs"), statuses: READ },
  { rule: "BD-3", name: "GET workspacebuilds/{b}/parameters", call: build("/parameters"), statuses: READ },
  { rule: "BD-3", name: "GET workspacebuilds/{b}/resources", call: build("/resources"), statuses: READ },
  { rule: "BD-3", name: "GET workspacebuilds/{b}/timings", call: build("/timings"), statuses: READ },
  { rule: "BD-5", name: "GET workspacebuilds/{b}/state", call: build("/state"), statuses: "401 403 403 403 404 200 200 404 200 401" },
  { rule: "BD-5", name: "PUT workspacebuilds/{b}/state", call: build("/state", "PUT", { state: "" }), statuses: "401 403 403 403 404 204 204 404 204 401" },
  // It has ended: 400 for everyone allowed.
  { rule: "BD-3", name: "PATCH workspacebuilds/{b}/cancel", call: build("/cancel", "PATCH"), statuses: "401 400 400 403 404 400 400 404 400 401" },
  { rule: "DR-5", name: "POST templateversions/{v}/dry-run", call: (one) => ["POST", `/api/v2/templateversions/${one.version_id}/dry-run`, { workspace_name: "try" }],
    statuses: "401 201 201 201 201 201 201 201 201 401" },
  // It has no such parameter: 400 for everyone allowed.
  { rule: "WC-7", name: "POST workspaces/{w}/wake", call: callTo("/wake", "POST", {}), statuses: READ },
  { rule: "WC-7", name: "POST workspaces/{w}/restart", call: callTo("/restart", "POST", { rich_parameter_values: [{ name: "x", value: "y" }] }), statuses: "401 400 400 403 404 400 400 404 400 401" },
  // Its agent is not an external one: 404 for everyone allowed.
  { rule: "WC-7", name: "GET workspaces/{w}/external-agent/{a}/credentials", call: callTo("/external-agent/main/credentials"), statuses: "401 404 404 404 404 403 403 404 404 401" },
  { rule: "FO-2", name: "GET workspaces/{w}/forks", call: callTo("/forks"), statuses: READ },
  { rule: "FO-3", name: "POST workspaces/{w}/forks", call: callTo("/forks", "POST", {}), statuses: "401 400 400 403 404 403 403 404 400 401" },
  { rule: "FO-2", name: "GET workspaces/{w}/forks/{f}", call: callTo(`/forks/${UNKNOWN_ID}`), statuses: "401 404 404 404 404 404 404 404 404 401" },
  { rule: "SN-1", name: "GET workspaces/{w}/snapshots", call: callTo("/snapshots"), statuses: READ },
  // Its provisioner does not support snapshots: 400 for everyone allowed.
  { rule: "SN-1", name: "POST workspaces/{w}/snapshots", call: callTo("/snapshots", "POST", {}), statuses: "401 400 400 403 404 400 400 404 400 401" },
  { rule: "SN-1", name: "POST workspaces/{w}/snapshots/{s}/restore", call: callTo(`/snapshots/${UNKNOWN_ID}/restore`, "POST"), statuses: "401 404 404 403 404 403 403 404 404 401" },
  { rule: "SN-1", name: "DELETE workspaces/{w}/snapshots/{s}", call: callTo(`/snapshots/${UNKNOWN_ID}`, "DELETE"), statuses: "401 404 404 403 404 403 403 404 404 401" },
  { rule: "HB-11", name: "GET workspaces/{w}/home-backups", call: callTo("/home-backups"), statuses: READ },
  { rule: "HB-11", name: "POST workspaces/{w}/home-backups", call: callTo("/home-backups", "POST"), statuses: "401 400 400 403 404 403 403 404 400 401" },
  { rule: "HB-11", name: "POST workspaces/{w}/home-backups/{b}/fetch", call: callTo(`/home-backups/${UNKNOWN_ID}/fetch`, "POST"), statuses: "401 404 404 403 404 403 403 404 404 401" },
  { rule: "HB-11", name: "DELETE workspaces/{w}/home-backups/{b}", call: callTo(`/home-backups/${UNKNOWN_ID}`, "DELETE"), statuses: "401 404 404 403 404 403 403 404 404 401" },
  { rule: "WC-7", name: "GET workspaces/trash", call: to(`${W}/trash`), statuses: "401 200 200 200 200 200 200 200 200 401" },
  // It is not in the trash.
  { rule: "WC-7", name: "POST workspaces/{w}/restore", call: callTo("/restore", "POST", {}), statuses: "401 409 409 403 404 409 409 404 409 401" },
  // The last two would change access or the objects themselves.
  { rule: "WC-7", name: "POST workspaces/{w}/builds (delete, orphan)", call: callTo("/builds", "POST", { transition: "delete", orphan: true, state: "x" }),
    statuses: "401 400 400 400 404 400 400 404 400 401" },
  { rule: "SH-4", name: "DELETE workspaces/{w}/acl", call: callTo("/acl", "DELETE"), statuses: "401 204 404 404 404 403 403 404 204 401" },
];

const fetchStatus = async (who: CallerName, row: Row): Promise<number> => {
  const [method, path, body] = row.call(cast, who);
  const response = await cast.clients[who].fetch(method, path, body);
  await response.body?.cancel();
  return response.status;
};

test.each(TABLE.map((row) => [row.rule, row.name, row] as const))("[WC-7] [%s] %s", async (_, name, row) => {
  const statuses: number[] = [];
  for (const who of CALLERS) statuses.push(await fetchStatus(who, row));
  seen.push([name, ...statuses].join("|"));
  expect(statuses.join(" ")).toBe(row.statuses);
});

test("[WC-7] every operation on workspaces, their builds and their ports has its row", async () => {
  const operations = listOperations(await fetchDocument(cast.server.url)).filter(({ path }) => OURS.test(path));
  expect(operations.length).toBeGreaterThan(30);
  const calls = TABLE.map(({ call }) => call(cast, "owner"));
  const isCalled = ({ method, path }: { method: string; path: string }): boolean => {
    const shape = new RegExp(`^${path.replaceAll(/\{[^}]*\}/g, "[^/]+")}$`);
    return calls.some(([asked, at]) => asked === method.toUpperCase() && shape.test(at.split("?")[0] ?? ""));
  };
  expect(operations.filter((one) => !isCalled(one)).map(({ name }) => name)).toEqual([]);
});
