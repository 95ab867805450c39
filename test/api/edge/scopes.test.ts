// Permissions of scoped keys, everywhere: every operation of the OpenAPI document with only its required scope, and with all scopes but
// that. The scope is declared next to the handler; `bun run access` lists them all.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { hasScope, isAccessScope, SCOPES } from "#schema/users/scopes.ts";
import type { ScopeNeed } from "#src/api/http/operation.ts";
import { Client } from "#src/client.ts";
import { describeInside } from "#test/support/inside.ts";
import { readDeclarations, readDeclaredScopes } from "../declared-scopes.ts";
import { type CompleteRow, callAs, chooseTest, getRow, NAMES } from "./matrix-call.ts";
import { CALLERS, type MatrixWorld, openMatrixWorld, type TestObjects } from "./matrix-world.ts";

const listScopes = (needed: ScopeNeed): readonly string[] => {
  if (typeof needed === "string") return [needed];
  return "oneOf" in needed ? needed.oneOf : needed;
};

/** Additional body members for a narrow key, which may not grant more than it has. */
const EXTRA_BODY: Record<string, object> = {
  "POST /api/v2/users/{user}/keys/tokens": { scopes: ["api_key:create"] },
  "PATCH /api/v2/users/{user}/keys/tokens/{name}": { scopes: ["api_key:update"] },
};

/** Single actions: without wildcards, groups, and full access. */
const SINGLE_ACTIONS = SCOPES.filter((name) => /^[a-z_]+:[a-z_]+$/.test(name) && !name.startsWith("coder:"));

test("[ID-21] a scope includes itself, its group and its wildcard, and nothing else", () => {
  expect(hasScope(["all"], "workspace:delete")).toBe(true);
  expect(hasScope(["workspace:*"], "workspace:delete")).toBe(true);
  expect(hasScope(["workspace:*"], "template:read")).toBe(false);
  expect(hasScope(["workspace:read"], "workspace:*")).toBe(false);
  expect(hasScope(["coder:workspaces.operate"], "workspace:start")).toBe(true);
  expect(hasScope(["coder:workspaces.operate"], "workspace:delete")).toBe(false);
  expect(hasScope(["coder:workspaces.operate"], "coder:workspaces.operate")).toBe(true);
  expect(hasScope(["coder:workspaces.access"], "coder:workspaces.operate")).toBe(false);
  expect(hasScope(["application_connect"], "workspace:application_connect")).toBe(true);
  expect(hasScope(["application_connect"], "workspace:read")).toBe(false);
  expect(hasScope(SINGLE_ACTIONS, "all")).toBe(false);
  expect(hasScope(["limited"], "workspace:read")).toBe(false);
});

/** Settings that neither run anything nor instruct a model. */
const HARMLESS_SETTINGS = [
  ...["/debug-logging", "/user-debug-logging", "/user-compaction-thresholds/{model}", "/ai/settings"],
  ...["/try", "/{user}/appearance", "/{user}/preferences", "/quiet-hours", "/deploy-keys", "/read-status"],
  ...["/mark-all-as-read", "/webpush/subscription", "/webpush/test", "/notifications/test"],
];

describeInside("keys with scopes", () => {
  let world: MatrixWorld;
  let scopesOf: ReadonlyMap<string, ScopeNeed>;
  const created = new Map<string, string>();
  beforeAll(async () => {
    world = await openMatrixWorld();
    scopesOf = readDeclaredScopes(world.server);
  });
  afterAll(async () => {
    await world[Symbol.asyncDispose]();
  });

  /** Returns a token of ada or the admin with these scopes. */
  const createScopedToken = async (parent: string | undefined, scopes: readonly string[]): Promise<string> => {
    const name = `${parent} ${scopes.join()}`;
    const createdId = created.get(name);
    if (createdId) return createdId;
    const client = new Client(world.server.url, parent);
    const { key } = await client.post<{ key: string }>("/api/v2/users/me/keys/tokens", { scopes, lifetime: "24h" });
    created.set(name, key);
    return key;
  };

  /** Returns the first of ada and the admin who is allowed, with the resulting status. */
  const findAllowedCaller = (row: CompleteRow): readonly ["ada" | "admin", number] | undefined => {
    const statuses = row.is.split(" ").map(Number);
    return (["ada", "admin"] as const)
      .map((who) => [who, statuses[CALLERS.indexOf(who)] as number] as const)
      .find(([, status]) => status !== 401 && status !== 403 && status !== 404);
  };

  test("[ID-21] every operation for people declares the scope that a key needs, in `operation` next to its handler", () => {
    const undeclared = world.operations.filter(({ callers, name }) => callers.includes("user") && !scopesOf.has(name));
    expect(undeclared.map(({ name }) => `${name} lacks scope: "<thing>:<action>", "any" or "all"`)).toEqual([]);
  });

  test("[OA-22] every operation that shares something declares `changesAccess`, for applications", () => {
    const sharing = [...readDeclarations(world.server)].filter(
      ([name, { scope }]) =>
        !name.startsWith("GET ") && ((typeof scope === "string" && isAccessScope(scope)) || name.endsWith("/acl")),
    );
    expect(sharing.length).toBeGreaterThan(8);
    expect(sharing.flatMap(([name, { changesAccess }]) => (changesAccess ? [] : [name]))).toEqual([]);
  });

  test("[OA-23] every setting of people, chats and the deployment that can run, instruct, delete or silence something later declares `outlivesGrant`", () => {
    const scopes: readonly string[] = [
      ...["chat_config:update", "user:update_personal", "user_secret:create", "user_secret:update"],
      ...["mcp_server:create", "mcp_server:update", "deployment_config:update", "notification:update", "user:update"],
    ];
    const settings = [...readDeclarations(world.server)].filter(
      ([name, { scope }]) =>
        !/^(?:GET|DELETE) /.test(name) && [scope].flat().some((one) => typeof one === "string" && scopes.includes(one)),
    );
    const undecided = settings.flatMap(([name, { outlivesGrant, changesAccess }]) =>
      outlivesGrant || changesAccess || HARMLESS_SETTINGS.some((one) => name.endsWith(one)) ? [] : [name],
    );
    expect(undecided).toEqual([]);
    expect(settings.length).toBeGreaterThan(25);
  });

  test.each(["/api/v2/%61udit", "/api/v2/unheard-of", "/elsewhere/api/v2/workspaces"])(
    "[ID-21] %s is not an operation, so a key with scopes gets nothing from it",
    async (path) => {
      const reader = new Client(
        world.server.url,
        await createScopedToken(world.tokens.admin, ["audit_log:read", "workspace:read"]),
      );
      expect((await reader.fetch("GET", path)).status).toBe(404);
    },
  );

  const tryScopes = async (name: string): Promise<void> => {
    const operation = world.operations.find((one) => one.name === name);
    const row = getRow(name);
    const allowed = findAllowedCaller(row);
    if (!operation?.callers.includes("user") || !allowed) return;
    const [who, expected] = allowed;
    const things: TestObjects = row.fresh ? { ...world.things, ...(await world.makers[row.fresh](who)) } : world.things;
    const parent = things.caller ?? world.tokens[who];
    const callWithScopes = async (scopes: readonly string[]): Promise<number> => {
      const more = EXTRA_BODY[name] ?? {};
      const response = await callAs(world, operation, row, await createScopedToken(parent, scopes), things, more);
      await response.body?.cancel();
      return response.status;
    };
    const needed = scopesOf.get(name) ?? "all";
    const scopes = listScopes(needed);
    if (needed === "any") {
      expect(await callWithScopes(["application_connect"])).toBe(403);
      expect(await callWithScopes(["audit_log:read"])).toBe(expected);
      return;
    }
    expect(await callWithScopes(SINGLE_ACTIONS.filter((scope) => !scopes.includes(scope)))).toBe(403);
    if (needed !== "all") expect(await callWithScopes(scopes)).toBe(expected);
  };
  for (const name of NAMES)
    chooseTest(name)(`[ID-21] ${name} with the scope it takes, and with all but that`, () => tryScopes(name));

  test("[ID-21] an operation that accepts one of several scopes accepts the right one; the refusal names the missing one", async () => {
    const path = `/api/v2/workspaces/${world.things.workspace}/builds`;
    const starter = new Client(world.server.url, await createScopedToken(world.tokens.ada, ["workspace:start"]));
    const build = (transition: string) => starter.fetch("POST", path, { transition });
    for (const transition of ["stop", "delete"]) {
      const refused = await build(transition);
      expect(refused.status).toBe(403);
      expect(((await refused.json()) as { detail: string }).detail).toContain(`workspace:${transition}`);
    }
    const elsewhere = await starter.fetch("GET", "/api/v2/templates");
    expect(await elsewhere.json()).toMatchObject({
      message: "The scope of this key is workspace:start.",
      detail: "This operation requires template:read.",
    });
    expect((await build("start")).status).toBe(201);
  });
});
