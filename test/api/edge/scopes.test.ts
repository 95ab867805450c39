// Scoped keys: calls every operation of the OpenAPI document with only its required scope, and with all scopes but that. Each scope is
// declared next to its handler; `bun run access` lists them all.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { hasScope, isAccessScope, SCOPES } from "#schema/users/scopes.ts";
import type { ScopeNeed } from "#src/api/http/operation.ts";
import { Client } from "#src/client.ts";
import { describeInProcess } from "#test/support/in-process.ts";
import { readDeclarations, readDeclaredScopes } from "../declared-scopes.ts";
import { type CompleteRow, callAs, chooseTest, getRow, OPERATION_NAMES } from "./matrix-call.ts";
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
  ...["/try", "/{user}/appearance", "/{user}/preferences", "/read-status"],
  ...["/mark-all-as-read", "/webpush/test", "/notifications/test"],
];

describeInProcess("keys with scopes", () => {
  let world: MatrixWorld;
  let scopesByOperation: ReadonlyMap<string, ScopeNeed>;
  const created = new Map<string, string>();
  beforeAll(async () => {
    world = await openMatrixWorld();
    scopesByOperation = readDeclaredScopes(world.server);
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

  /** Returns the first allowed caller of ada and the admin, with the expected status. */
  const findAllowedCaller = (row: CompleteRow): readonly ["ada" | "admin", number] | undefined => {
    const statuses = row.statuses.split(" ").map(Number);
    return (["ada", "admin"] as const)
      .map((caller) => [caller, statuses[CALLERS.indexOf(caller)] as number] as const)
      .find(([, status]) => status !== 401 && status !== 403 && status !== 404);
  };

  test("[ID-21] every operation for users declares the scope that a key needs", () => {
    const undeclared = world.operations.filter(
      ({ callers, name }) => callers.includes("user") && !scopesByOperation.has(name),
    );
    expect(undeclared.map(({ name }) => `${name} lacks scope: "<thing>:<action>", "any" or "all"`)).toEqual([]);
  });

  test("[OA-22] every operation that changes access declares `changesAccess`", () => {
    const sharing = [...readDeclarations(world.server)].filter(
      ([name, { scope }]) =>
        !name.startsWith("GET ") && ((typeof scope === "string" && isAccessScope(scope)) || name.endsWith("/acl")),
    );
    expect(sharing.length).toBeGreaterThan(8);
    expect(sharing.flatMap(([name, { changesAccess }]) => (changesAccess ? [] : [name]))).toEqual([]);
  });

  test("[OA-23] every setting with a later effect declares `outlivesGrant`, also a deletion, unless it is harmless", () => {
    const scopes: readonly string[] = [
      ...["chat_config:update", "user:update_personal", "user_secret:create", "user_secret:update"],
      ...["mcp_server:create", "mcp_server:update", "deployment_config:update", "notification:update", "user:update"],
      ...["user_secret:delete", "mcp_server:delete", "template:delete"],
    ];
    const settings = [...readDeclarations(world.server)].filter(
      ([name, { scope }]) =>
        !name.startsWith("GET ") && [scope].flat().some((name) => typeof name === "string" && scopes.includes(name)),
    );
    const undecided = settings.flatMap(([name, { outlivesGrant, changesAccess }]) =>
      outlivesGrant || changesAccess || HARMLESS_SETTINGS.some((suffix) => name.endsWith(suffix)) ? [] : [name],
    );
    expect(undecided).toEqual([]);
    expect(settings.length).toBeGreaterThan(25);
  });

  test("[OA-22] every operation that ends or changes a sign-in, token, grant or account is closed to applications", () => {
    const scopes: readonly ScopeNeed[] = [
      ...(["api_key:update", "api_key:delete", "user:delete", "provisioner_key:delete"] as const),
    ];
    const ending = [...readDeclarations(world.server)].filter(([, { scope }]) => scope && scopes.includes(scope));
    expect(ending.length).toBeGreaterThan(7);
    expect(ending.flatMap(([name, { changesAccess }]) => (changesAccess === "never" ? [] : [name]))).toEqual([]);
  });

  test.each(["/api/v2/%61udit", "/api/v2/unheard-of", "/elsewhere/api/v2/workspaces"])(
    "[ID-21] %s is not an operation, so a scoped key gets 404",
    async (path) => {
      const reader = new Client(
        world.server.url,
        await createScopedToken(world.tokens.admin, ["audit_log:read", "workspace:read"]),
      );
      expect((await reader.fetch("GET", path)).status).toBe(404);
    },
  );

  const checkScopes = async (name: string): Promise<void> => {
    const operation = world.operations.find((operation) => operation.name === name);
    const row = getRow(name);
    const allowed = findAllowedCaller(row);
    if (!operation?.callers.includes("user") || !allowed) return;
    const [caller, expected] = allowed;
    const things: TestObjects = row.fresh
      ? { ...world.things, ...(await world.makers[row.fresh](caller)) }
      : world.things;
    const parent = things.caller ?? world.tokens[caller];
    const callWithScopes = async (scopes: readonly string[]): Promise<number> => {
      const token = await createScopedToken(parent, scopes);
      const response = await callAs(world, operation, row, token, things, EXTRA_BODY[name]);
      await response.body?.cancel();
      return response.status;
    };
    const needed = scopesByOperation.get(name) ?? "all";
    const scopes = listScopes(needed);
    if (needed === "any") {
      expect(await callWithScopes(["application_connect"])).toBe(403);
      expect(await callWithScopes(["audit_log:read"])).toBe(expected);
      return;
    }
    expect(await callWithScopes(SINGLE_ACTIONS.filter((scope) => !scopes.includes(scope)))).toBe(403);
    if (needed !== "all") expect(await callWithScopes(scopes)).toBe(expected);
  };
  for (const name of OPERATION_NAMES)
    chooseTest(name)(`[ID-21] ${name} accepts its own scope and no other`, () => checkScopes(name));

  test("[ID-21] an operation that accepts several scopes checks the one for the action, and names it in the error", async () => {
    const path = `/api/v2/workspaces/${world.things.workspace}/builds`;
    const starter = new Client(world.server.url, await createScopedToken(world.tokens.ada, ["workspace:start"]));
    const createBuild = (transition: string) => starter.fetch("POST", path, { transition });
    for (const transition of ["stop", "delete"]) {
      const rejected = await createBuild(transition);
      expect(rejected.status).toBe(403);
      expect(((await rejected.json()) as { detail: string }).detail).toContain(`workspace:${transition}`);
    }
    const templatesResponse = await starter.fetch("GET", "/api/v2/templates");
    expect(await templatesResponse.json()).toMatchObject({
      message: "The scope of this key is workspace:start.",
      detail: "This operation requires template:read.",
    });
    expect((await createBuild("start")).status).toBe(201);
  });
});
