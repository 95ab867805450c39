// Who gets which answer from each endpoint of workspaces: a table of statuses, printed as it was seen. Every cell is asked of a
// workspace of ada that is shared with amy (admin) and uma (use).
import { afterAll, beforeAll, expect, test } from "bun:test";
import { CALLERS, type CallerName, openCast } from "./cast.ts";

type Cast = Awaited<ReturnType<typeof openCast>>;
type Row = {
  readonly rule: string;
  readonly call: (cast: Cast, who: CallerName) => readonly [method: string, path: string, body?: unknown];
  /** Statuses in the order of CALLERS, agent last. */
  readonly statuses: string;
  /** The same call as it stands in the specification. */
  readonly name: string;
};

let cast: Cast;
const seen: string[] = [];
beforeAll(async () => {
  cast = await openCast();
});
afterAll(async () => {
  await cast[Symbol.asyncDispose]();
  const width = Math.max(...seen.map((line) => line.indexOf("|")));
  const lines = seen.map((line) => {
    const [name = "", statuses = ""] = line.split("|");
    return `${name.padEnd(width)} ${statuses}`;
  });
  process.stderr.write(`${"".padEnd(width)} ${CALLERS.join(", ")}\n${lines.join("\n")}\n`);
});

const W = "/api/v2/workspaces";
const share = { agent_name: "dev", port: 8080, protocol: "http", share_level: "owner" };
const at =
  (suffix: string, method = "GET", body?: unknown) =>
  (one: Cast) =>
    [method, `${one.path}${suffix}`, body] as const;
const to =
  (path: string, method = "GET", body?: unknown) =>
  () =>
    [method, path, body] as const;

const create = (path: string, prefix: string) => (one: Cast, who: CallerName) =>
  ["POST", path, { name: `${prefix}-${who.replace(" ", "-")}`, template_id: one.template_id }] as const;

// What is forbidden to those who may see it is 403, and 404 to those who may not.
// guest, owner, shared admin, shared use, member, template admin, organization admin, auditor, site owner, agent
const READ = "401 200 200 200 404 200 200 404 200 401";
const CHANGE = "401 204 204 403 404 204 204 404 204 401";
const OWN = "401 204 403 403 404 403 403 404 403 401";
const SHARE = "401 204 403 403 404 403 403 404 204 401";

// biome-ignore format: a table
const TABLE: Row[] = [
  { rule: "WC-7", name: "POST users/me/workspaces", call: create("/api/v2/users/me/workspaces", "own"), statuses: "401 200 200 200 200 200 200 200 200 401" },
  { rule: "WC-7", name: "POST organizations/{o}/members/ada/workspaces", call: create("/api/v2/organizations/default/members/ada/workspaces", "for"),
    statuses: "401 200 404 404 404 403 200 403 200 401" },
  { rule: "WC-7", name: "GET workspaces", call: to(W), statuses: "401 200 200 200 200 200 200 200 200 401" },
  { rule: "WC-7", name: "GET workspaces/{w}", call: at(""), statuses: READ },
  { rule: "WC-7", name: "GET users/{u}/workspace/{name}", call: to("/api/v2/users/ada/workspace/dev"), statuses: READ },
  { rule: "WC-7", name: "GET workspaces/{w}/builds", call: at("/builds"), statuses: READ },
  { rule: "WC-4", name: "GET workspaces/{w}/timings", call: at("/timings"), statuses: READ },
  { rule: "WC-3", name: "GET workspaces/{w}/resolve-autostart", call: at("/resolve-autostart"), statuses: READ },
  { rule: "SH-1", name: "GET workspaces/{w}/acl", call: at("/acl"), statuses: READ },
  { rule: "SH-8", name: "GET workspaces/{w}/port-share", call: at("/port-share"), statuses: READ },
  { rule: "WC-7", name: "GET workspaces/{w}/watch", call: at("/watch"), statuses: READ },
  // Without an upgrade: 400 says that one is needed.
  { rule: "WC-7", name: "GET workspaces/{w}/watch-ws", call: at("/watch-ws"), statuses: READ.replaceAll("200", "400") },
  { rule: "WC-7", name: "PUT workspaces/{w}/favorite", call: at("/favorite", "PUT"), statuses: OWN },
  { rule: "WC-7", name: "DELETE workspaces/{w}/favorite", call: at("/favorite", "DELETE"), statuses: OWN },
  { rule: "WC-1", name: "PATCH workspaces/{w}", call: at("", "PATCH", { name: "dev" }), statuses: CHANGE },
  { rule: "WC-2", name: "PUT workspaces/{w}/autoupdates", call: at("/autoupdates", "PUT", { automatic_updates: "never" }), statuses: CHANGE },
  { rule: "TI-13", name: "GET workspaces/{w}/activity", call: at("/activity"), statuses: READ },
  { rule: "WC-5", name: "POST workspaces/{w}/usage", call: at("/usage", "POST"), statuses: CHANGE },
  { rule: "WC-7", name: "PUT workspaces/{w}/ttl", call: at("/ttl", "PUT", { ttl_ms: null }), statuses: CHANGE },
  { rule: "WC-7", name: "PUT workspaces/{w}/autostart", call: at("/autostart", "PUT", { schedule: null }), statuses: CHANGE },
  { rule: "WC-7", name: "PUT workspaces/{w}/dormant", call: at("/dormant", "PUT", { dormant: false }), statuses: CHANGE.replaceAll("204", "200") },
  // It has no deadline: 409 for all who may. An agent may for its own workspace.
  { rule: "WC-7", name: "PUT workspaces/{w}/extend", call: at("/extend", "PUT", { deadline: "2040-01-01T00:00:00Z" }),
    statuses: "401 409 409 403 404 409 409 404 409 409" },
  { rule: "SH-2", name: "PATCH workspaces/{w}/acl", call: at("/acl", "PATCH", { user_roles: {} }), statuses: SHARE },
  { rule: "SH-8", name: "POST workspaces/{w}/port-share", call: at("/port-share", "POST", share), statuses: CHANGE.replaceAll("204", "200") },
  { rule: "SH-8", name: "DELETE workspaces/{w}/port-share", call: at("/port-share", "DELETE", { agent_name: "dev", port: 9 }), statuses: CHANGE.replaceAll("204", "404") },
  { rule: "WC-6", name: "GET .../members/me/workspaces/available-users",
    call: to("/api/v2/organizations/default/members/me/workspaces/available-users"), statuses: "401 403 403 403 403 403 200 403 200 401" },
  // The last two would change who may do what, or what there is.
  { rule: "WC-7", name: "POST workspaces/{w}/builds (delete, orphan)", call: at("/builds", "POST", { transition: "delete", orphan: true, state: "x" }),
    statuses: "401 400 400 400 404 400 400 404 400 401" },
  { rule: "SH-4", name: "DELETE workspaces/{w}/acl", call: at("/acl", "DELETE"), statuses: "401 204 404 404 404 403 403 404 204 401" },
];

const statusOf = async (who: CallerName, row: Row): Promise<number> => {
  const [method, path, body] = row.call(cast, who);
  const response = await cast.clients[who].fetch(method, path, body);
  await response.body?.cancel();
  return response.status;
};

test.each(TABLE.map((row) => [row.rule, row.name, row] as const))("[WC-7] [%s] %s", async (_, name, row) => {
  const statuses: number[] = [];
  for (const who of CALLERS) statuses.push(await statusOf(who, row));
  seen.push(`${name}|${statuses.join(" ")}`);
  expect(statuses.join(" ")).toBe(row.statuses);
});
