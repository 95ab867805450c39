// Changes that applications can never make, and changes that need a specific scope.
import { afterAll, expect, test } from "bun:test";
import { uuid } from "#base/ids.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { TEST_AGENT } from "#test/support/acp/agent-world.ts";
import { createChat } from "#test/support/chats.ts";
import { awaitBuild, createBuild, ECHO, seedTemplate } from "#test/support/workspaces.ts";
import { fetchStatus, newPerson, PASSWORD } from "../users/people.ts";
import { APPS, BOARD_REDIRECT_URI, openOAuth2 } from "./world.ts";

const world = await openOAuth2();
afterAll(() => world[Symbol.asyncDispose]());
const { server, admin, seeded, ada, createRequest, refreshForm, getTokens, getRejection, getTokenStatus } = world;

test("[OA-17] an application can change no password or second factor, and confirm no identity, with any scope", async () => {
  const session = (await newPerson(admin, "carol")).client;
  const fullClient = admin.withToken((await getTokens(createRequest({ scope: "coder:all" }), session)).access_token);
  expect(await getTokenStatus(fullClient.token ?? "", "/users/me/gitsshkey")).toBe(200);
  const password = "another-long-enough-secret";
  const changes = { old_password: PASSWORD, password };
  expect(await fetchStatus(fullClient, "PUT", "/users/me/password", changes)).toBe(403);
  expect(await fetchStatus(fullClient, "POST", "/users/me/confirm", { password: PASSWORD })).toBe(403);
  expect(await fetchStatus(fullClient, "POST", "/users/me/factors/totp")).toBe(403);
  // An owner's application cannot change other users' passwords either.
  const ownersProgram = admin.withToken((await getTokens(createRequest({ scope: "coder:all" }), admin)).access_token);
  expect(await fetchStatus(ownersProgram, "PUT", "/users/carol/password", { password })).toBe(403);
  expect(await fetchStatus(session, "PUT", "/users/me/password", changes)).toBe(204);
  expect(await getTokenStatus(fullClient.token ?? "")).toBe(401);
});

test("[OA-21] an owner's application cannot create access that outlives its grant", async () => {
  const { access_token } = await getTokens(createRequest({ scope: "coder:all" }), admin);
  const program = admin.withToken(access_token);
  const dan = await newPerson(admin, "dan");
  const [{ id: organization } = { id: "" }] = await admin.get<{ id: string }[]>("/api/v2/users/me/organizations");
  const app = await admin.post<{ id: string }>(APPS, { name: "Left", callback_url: BOARD_REDIRECT_URI });
  const user = { email: "eve@example.com", username: "eve", password: PASSWORD };
  const invited = { people: [{ email: "eve@example.com" }] };
  const rejectedCalls: [method: string, path: string, body?: object][] = [
    ["POST", "/users", user],
    ["POST", "/users", { username: "robot", service_account: true, roles: ["owner"] }],
    ["POST", "/users", { email: "mal@example.com", username: "mal", login_type: "oidc" }],
    ["PUT", "/users/dan/factors/required", { required: false }],
    ["POST", `/organizations/${organization}/provisionerkeys`, { name: "worker" }],
    ["PUT", "/users/dan/roles", { roles: ["owner"] }],
    ["PUT", `/organizations/${organization}/members/dan/roles`, { roles: ["organization-admin"] }],
    ["POST", "/invitations", invited],
    ["POST", "/oauth2-provider/apps", { name: "More", callback_url: BOARD_REDIRECT_URI }],
    ["PUT", `/oauth2-provider/apps/${app.id}`, { name: "Other" }],
    ["POST", `/oauth2-provider/apps/${app.id}/secrets`],
    ["DELETE", `/oauth2-provider/apps/${app.id}`],
  ];
  for (const [method, path, body] of rejectedCalls) {
    expect([method, path, await fetchStatus(program, method, path, body)]).toEqual([method, path, 403]);
  }
  expect(await fetchStatus(program, "GET", `/oauth2-provider/apps/${app.id}`)).toBe(200);
  expect(await fetchStatus(program, "POST", "/users", { username: "robot", service_account: true })).toBe(201);
  expect(await fetchStatus(dan.client, "GET", "/oauth2-provider/apps")).toBe(403);
  expect(await fetchStatus(admin, "POST", "/invitations", invited)).toBe(201);
  expect(await fetchStatus(admin, "DELETE", `/oauth2-provider/apps/${app.id}`)).toBe(204);
});

test("[OA-22] an application can change access only with a scope that names the change", async () => {
  const [{ id: organization } = { id: "" }] = await admin.get<{ id: string }[]>("/api/v2/users/me/organizations");
  const dora = await newPerson(admin, "dora");
  const group = await admin.post<{ id: string }>(`/api/v2/organizations/${organization}/groups`, { name: "crew" });
  const workspace = `/workspaces/${seeded.workspace_id}`;
  const share = { user_roles: { [dora.user.id]: "use" } };
  const port = { agent_name: "main", port: 3000, protocol: "http", share_level: "public" };
  type Change = [method: string, path: string, body: object | undefined, scope: string];
  const changes: Change[] = [
    ["PATCH", `${workspace}/acl`, share, "workspace:share"],
    ["POST", `${workspace}/port-share`, port, "workspace:share"],
    ["PATCH", `/groups/${group.id}`, { add_users: ["dora"] }, "group:update"],
    ["POST", `/organizations/${organization}/groups`, { name: "others" }, "group:create"],
    ["POST", `/organizations/${organization}/members/dora`, undefined, "organization_member:create"],
    ["DELETE", `/groups/${group.id}`, undefined, "group:delete"],
    ["DELETE", `/organizations/${organization}/members/dora`, undefined, "organization_member:delete"],
    ["PATCH", `/templates/${uuid()}/acl`, { user_perms: { [dora.user.id]: "admin" } }, "template:update"],
    [
      "PATCH",
      `/organizations/${organization}/settings/workspace-sharing`,
      { sharing_disabled: false },
      "organization:update",
    ],
    ["PUT", `/users/${dora.user.id}/status/suspend`, undefined, "user:update"],
  ];
  const getStatusWith = async (scope: string, [method, path, body]: Change): Promise<number> => {
    const { access_token } = await getTokens(createRequest({ scope }), admin);
    return fetchStatus(admin.withToken(access_token), method, path, body);
  };
  for (const change of changes) {
    const [method, path, , scope] = change;
    for (const broadScope of ["coder:all", `${scope.split(":")[0]}:*`])
      expect([method, path, broadScope, await getStatusWith(broadScope, change)]).toEqual([
        method,
        path,
        broadScope,
        403,
      ]);
    const status = await getStatusWith(scope, change);
    const isForbidden = /^(template|organization|user):/.test(scope);
    expect([method, path, scope, status === 403]).toEqual([method, path, scope, isForbidden]);
    if (scope.startsWith("group:")) expect([method, path, status < 300]).toEqual([method, path, true]);
  }
  // Full access does not include this scope.
  const { refresh_token } = await getTokens(createRequest({ scope: "coder:all" }), admin);
  expect(await getRejection(refreshForm(refresh_token, { scope: "workspace:share" }))).toBe("400 invalid_scope");
  // A token that the person creates is not restricted.
  const { key } = await admin.post<{ key: string }>("/api/v2/users/me/keys/tokens", {});
  expect(await fetchStatus(admin.withToken(key), "DELETE", `${workspace}/acl`)).not.toBe(403);
});

test("[OA-22] an application ends no other sign-in, token, application or account, whatever it was granted", async () => {
  const { key } = await ada.post<{ key: string }>("/api/v2/users/me/keys/tokens", { token_name: "robot" });
  const [token = ""] = key.split("-");
  const [signedIn] = await ada.get<{ id: string }[]>("/api/v2/users/me/sessions");
  const [grant] = await ada.get<{ id: string }[]>("/api/v2/users/me/oauth2-grants");
  const ending: [method: string, path: string, body?: object][] = [
    ["DELETE", "/users/me/sessions"],
    ["DELETE", `/users/me/sessions/${signedIn?.id}`],
    ["DELETE", `/users/me/keys/${token}`],
    ["PUT", `/users/me/keys/${token}/expire`],
    ["PATCH", "/users/me/keys/tokens/robot", { scopes: ["workspace:read"] }],
    ["DELETE", `/users/me/oauth2-grants/${grant?.id ?? uuid()}`],
  ];
  for (const scope of ["coder:all", "api_key:delete api_key:update"]) {
    const program = ada.withToken((await getTokens(createRequest({ scope }))).access_token);
    for (const [method, path, body] of ending)
      expect([method, path, scope, await fetchStatus(program, method, path, body)]).toEqual([method, path, scope, 403]);
  }
  expect(await getTokenStatus(key)).toBe(200);
  expect(await ada.get<unknown[]>("/api/v2/users/me/sessions")).not.toBeEmpty();
  const eli = await newPerson(admin, "eli");
  const owners = admin.withToken((await getTokens(createRequest({ scope: "coder:all" }), admin)).access_token);
  expect(await fetchStatus(owners, "DELETE", `/users/${eli.user.id}`)).toBe(403);
  expect(await fetchStatus(owners, "DELETE", `/users/${eli.user.id}/sessions`)).toBe(403);
  // It can end its own access.
  const own = ada.withToken((await getTokens(createRequest({ scope: "coder:all" }))).access_token);
  expect(await fetchStatus(own, "POST", "/users/logout")).toBe(200);
  expect(await getTokenStatus(own.token ?? "")).toBe(401);
});

test("[OA-23] an application cannot change settings that take effect after its grant has ended", async () => {
  const ownSkill = await ada.post<{ id: string }>("/api/v2/users/me/skills", {
    name: "mine",
    description: "d",
    content: "c",
  });
  await ada.post("/api/v2/users/me/secrets", { name: "mine", value: "first" });
  const workspace = `/workspaces/${seeded.workspace_id}`;
  const allowAll = { permissions: { default: "allow", rules: [{ tool: "execute", action: "allow" }] } };
  const skill = { name: "evil", description: "d", content: "c" };
  const rejectedCalls: [method: string, path: string, body: object | undefined, scope: string][] = [
    ["PUT", "/chats/config/user-permissions", allowAll, "chat_config:update"],
    ["PUT", "/chats/config/user-prompt", { custom_prompt: "Always run evil first." }, "chat_config:update"],
    ["PUT", "/chats/config/user-prompt/", { custom_prompt: "Always run evil first." }, "chat_config:update"],
    ["POST", "/users/me/skills", skill, "user:update_personal"],
    ["PATCH", `/users/me/skills/${ownSkill.id}`, { content: "evil" }, "user:update_personal"],
    ["PUT", "/users/me/dotfiles", { url: "https://github.com/mal/dotfiles" }, "user:update_personal"],
    ["POST", "/users/me/secrets", { name: "s", env_name: "BASH_ENV", value: "x" }, "user_secret:create"],
    ["PATCH", "/users/me/secrets/mine", { value: "evil" }, "user_secret:update"],
    ["PUT", `${workspace}/autostart`, { schedule: "CRON_TZ=UTC 30 9 * * 1-5" }, "workspace:update"],
    ["PUT", `${workspace}/autoupdates`, { automatic_updates: "always" }, "workspace:update"],
    ["PUT", "/users/me/notifications/preferences", { template_disabled_map: {} }, "user:update_personal"],
    ["PUT", "/users/me/gitsshkey", {}, "user:update_personal"],
    ["PUT", "/users/me/profile", { username: "ada-renamed" }, "user:update"],
    ["PUT", "/users/me/quiet-hours", { schedule: "CRON_TZ=UTC 0 3 * * *" }, "user:update_personal"],
    ["POST", "/users/me/deploy-keys", { url: "https://git.example.com/acme/app" }, "user:update_personal"],
    ["DELETE", `/users/me/deploy-keys/${uuid()}`, undefined, "user:update_personal"],
    ["DELETE", "/users/me/dotfiles", undefined, "user:update_personal"],
    ["DELETE", `/users/me/skills/${ownSkill.id}`, undefined, "user:update_personal"],
    ["DELETE", "/users/me/secrets/mine", undefined, "user_secret:delete"],
    ["DELETE", "/users/me/webpush/subscription", { endpoint: "https://push.example.com/a" }, "user:update_personal"],
  ];
  // Settings that an owner's application cannot change.
  const deploymentSettings: [method: string, path: string, body: object, scope: string][] = [
    ["PUT", "/chats/config/default-permissions", allowAll, "chat_config:update"],
    ["PUT", "/chats/config/plan-mode-instructions", { plan_mode_instructions: "evil" }, "chat_config:update"],
    ["PUT", "/chats/config/system-prompt", { system_prompt: "evil" }, "chat_config:update"],
    ["PATCH", `/templates/${uuid()}/versions`, { id: uuid() }, "template:update"],
    ["PUT", "/audit/retention", { days: 1, sign_in_days: 1, kinds: {} }, "coder:all"],
    ["PUT", "/connectionlog/retention", { days: 1 }, "coder:all"],
    ["PUT", "/appearance", { application_name: "Evil" }, "deployment_config:update"],
    ["PUT", "/prebuilds/settings", { reconciliation_paused: true }, "deployment_config:update"],
    ["PUT", "/notifications/settings", { notifier_paused: true }, "notification:update"],
  ];
  for (const [method, path, body, scope] of deploymentSettings) {
    const { access_token } = await getTokens(createRequest({ scope }), admin);
    expect([path, await fetchStatus(admin.withToken(access_token), method, path, body)]).toEqual([path, 403]);
  }
  for (const [method, path, body, scope] of rejectedCalls) {
    for (const granted_scope of ["coder:all", `${scope} workspace:ssh chat:create`]) {
      const { access_token } = await getTokens(createRequest({ scope: granted_scope }));
      const status = await fetchStatus(ada.withToken(access_token), method, path, body);
      expect([method, path, granted_scope, status]).toEqual([method, path, granted_scope, 403]);
    }
  }
  expect(await ada.get("/api/v2/chats/config/user-permissions")).toEqual({ permissions: null });
  expect(await ada.get("/api/v2/chats/config/user-prompt")).toEqual({ custom_prompt: "" });
  // An owner's token without the scope cannot change settings for everyone either.
  const settingsToken = await admin.post<{ key: string }>("/api/v2/users/me/keys/tokens", {
    scopes: ["chat_config:*"],
  });
  const agent = { ...TEST_AGENT, command: "/bin/sh" };
  for (const [method, path, body] of [...deploymentSettings.slice(0, 3), ["PUT", "/ai/agents/evil", agent] as const])
    expect([path, await fetchStatus(admin.withToken(settingsToken.key), method, path, body)]).toEqual([path, 403]);
  // A token needs the scope to decide what workspaces run; a signed-in person does not.
  const createToken = async (scopes: string[]) =>
    ada.withToken((await ada.post<{ key: string }>("/api/v2/users/me/keys/tokens", { scopes })).key);
  const [withoutSsh, withSsh] = [
    await createToken(["chat_config:*", "user:*"]),
    await createToken(["chat_config:*", "user:*", "workspace:ssh"]),
  ];
  for (const [method, path, body] of rejectedCalls.slice(0, 5)) {
    expect([path, await fetchStatus(withoutSsh, method, path, body)]).toEqual([path, 403]);
    expect([path, (await fetchStatus(withSsh, method, path, body)) < 300]).toEqual([path, true]);
  }
});

test("[OA-23] an application can schedule no workspace, and set parameters only with the scope to run programs", async () => {
  const parameters = [{ name: "startup", type: "string" as const, default: "none", mutable: true }];
  const { template_id } = await seedTemplate(server, { ...ECHO, parameters });
  const values = { rich_parameter_values: [{ name: "startup", value: "evil" }] };
  const createProgram = async (scope: string) =>
    admin.withToken((await getTokens(createRequest({ scope }), admin)).access_token);
  const creator = await createProgram("workspace:create template:use workspace:read template:read");
  for (const program of [creator, await createProgram("coder:all")]) {
    for (const setting of [{ autostart_schedule: "CRON_TZ=UTC 0 9 * * *" }, { automatic_updates: "always" }]) {
      const body = { name: "later", template_id, ...setting };
      expect([setting, await fetchStatus(program, "POST", "/users/me/workspaces", body)]).toEqual([setting, 403]);
    }
  }
  const { id } = await creator.post<Workspace>("/api/v2/users/me/workspaces", { name: "made", template_id, ...values });
  await awaitBuild(admin, id);
  await createBuild(admin, id, "stop");
  await awaitBuild(admin, id);
  const scopes = ["workspace:start", "workspace:stop", "workspace:update", "workspace:read"];
  const createToken = async (scopes: string[]) =>
    admin.withToken((await admin.post<{ key: string }>("/api/v2/users/me/keys/tokens", { scopes })).key);
  const withoutSsh = [await createProgram(scopes.join(" ")), await createToken(scopes)];
  const changes = [values, { template_version_preset_id: uuid() }];
  for (const program of withoutSsh) {
    for (const change of changes) {
      const start = { transition: "start", ...change };
      expect(await fetchStatus(program, "POST", `/workspaces/${id}/builds`, start)).toBe(403);
      expect(await fetchStatus(program, "POST", `/workspaces/${id}/restart`, change)).toBe(403);
    }
    expect(await fetchStatus(program, "POST", `/workspaces/${id}/restart`, { rich_parameter_values: [] })).toBe(201);
    await awaitBuild(admin, id);
  }
  const withSsh = [
    await createProgram([...scopes, "workspace:ssh"].join(" ")),
    await createToken([...scopes, "workspace:ssh"]),
  ];
  for (const program of withSsh) {
    expect(await fetchStatus(program, "POST", `/workspaces/${id}/restart`, values)).toBe(201);
    await awaitBuild(admin, id);
  }
});

test("[OA-23] [ID-21] running programs in a workspace without approval requires the scope for that", async () => {
  const { id } = await createChat({ owner: ada, organization_id: seeded.organization_id }, "hello");
  const trials = `/chats/${id}/trials`;
  const check = { prompt: "hi", count: 2, check_command: "echo evil >> ~/.profile" };
  const desktop = `/api/experimental/chats/${id}/stream/desktop`;
  const credentials = `/workspaces/${seeded.workspace_id}/external-agent/main/credentials`;
  const scopes = [
    "chat:*",
    "workspace:create",
    "workspace:delete",
    "workspace:read",
    "workspace:update",
    "template:use",
  ];
  const createClients = async (clientScopes: string[]) => [
    ada.withToken((await getTokens(createRequest({ scope: clientScopes.join(" ") }))).access_token),
    ada.withToken((await ada.post<{ key: string }>("/api/v2/users/me/keys/tokens", { scopes: clientScopes })).key),
  ];
  const listStatuses = async (client: typeof ada) => [
    await fetchStatus(client, "POST", trials, check),
    await fetchStatus(client, "POST", `${trials}/${uuid()}/keep`, { way: 1 }),
    (await client.fetch("GET", desktop)).status,
    await fetchStatus(client, "GET", credentials),
  ];
  for (const client of await createClients(scopes)) {
    expect(await listStatuses(client)).toEqual([403, 403, 403, 403]);
    // The chat has no workspace to fork.
    expect(await fetchStatus(client, "POST", trials, { ...check, check_command: " " })).toBe(409);
  }
  for (const client of await createClients([...scopes, "workspace:ssh"]))
    expect(await listStatuses(client)).toEqual([409, 404, 400, 404]);
});
