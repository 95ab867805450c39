// Test data for the authorization matrix: ada owns an object of each kind, and every kind of caller tries to access it. Used by
// matrix.test.ts; needs a server in this process.
import { sha256, uuid } from "#base/ids.ts";
import { insertOAuth2Grant } from "#db/oauth2/grants.ts";
import { insertKey } from "#db/users/api-keys.ts";
import type { Manifest } from "#schema/templates/manifest.ts";
import { Client } from "#src/client.ts";
import { fetchDocument, listOperations } from "#test/fuzz/operations.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { getContext, seedUser } from "#test/support/seed.ts";
import { ADMIN, startTestServer } from "#test/support/server.ts";
import { awaitBuild, createWorkspace, seedTemplate } from "#test/support/workspaces.ts";

/** The four kinds of strangers share one column: all must get the same status. */
export const STRANGERS = ["none", "wrong", "expired", "revoked"] as const;

/** The columns of a row, in order. */
export const CALLERS = ["stranger", "agent", "other agent", "foreigner", "colleague", "ada", "admin"] as const;
export type CallerName = (typeof CALLERS)[number];

/** The objects of a call: path parameters, `{name}` in bodies and rows, and the caller if it is a new one. */
export type TestObjects = Readonly<Record<string, string>>;

/** A template with an app that needs a key. */
const WITH_EDITOR: Manifest = {
  provisioner: "echo",
  resources: [
    {
      name: "main",
      agents: [
        {
          name: "dev",
          os: "linux",
          arch: "amd64",
          apps: [{ slug: "editor", url: "vscode://coder.coder-remote/open?token=$SESSION_TOKEN", external: true }],
        },
      ],
    },
  ],
};

export type MatrixWorldOptions = { manifest?: Manifest; client_secret?: string };

const DAY = 86_400_000;
const toContent = (text: string) => [{ type: "text", text }];

/** An unreachable provider of external accounts. Its secret is for the canary test. */
const PROVIDER = { id: "acme", type: "gitea", client_id: "c", base_url: "https://git.invalid" };

export const openMatrixWorld = async ({ manifest = WITH_EDITOR, client_secret = "s" }: MatrixWorldOptions = {}) => {
  const clock = new ManualClock();
  const server = await startTestServer({
    clock,
    env: { SLIPWAY_EXTERNAL_AUTH: JSON.stringify([{ ...PROVIDER, client_secret }]), SLIPWAY_OAUTH2_PROVIDER: "true" },
  });
  const { store } = getContext(server);
  const expired = (await seedUser(server)).token;
  // One jump, so that nodes do not process each second of the day.
  clock.leap(DAY + 1);
  const anonymous = new Client(server.url);
  const admin = await anonymous.signIn(ADMIN.email, ADMIN.password);
  const revoked = await anonymous.signIn(ADMIN.email, ADMIN.password);
  await revoked.post("/api/v2/users/logout");
  const template = await seedTemplate(server, manifest);
  const { organization_id } = template;
  const people = {
    ada: await seedUser(server, { username: "ada", organization_id }),
    bob: await seedUser(server, { username: "bob", organization_id }),
    zoe: await seedUser(server, { username: "zoe" }),
  };
  const ada = admin.withToken(people.ada.token);
  const bob = admin.withToken(people.bob.token);

  /** Adds a key for this user, created a moment ago. */
  const addKey = async (
    user_id: string,
    name: string,
    login_type = "token",
  ): Promise<{ id: string; token: string }> => {
    const [id, secret] = [uuid().replaceAll("-", "").slice(0, 10), uuid().replaceAll("-", "").slice(0, 22)];
    const now = clock.now();
    await store.commit([
      insertKey({
        id,
        user_id,
        token_name: name,
        secret_hash: sha256(secret),
        login_type,
        scope: "all",
        lifetime_seconds: 3600,
        last_used: now,
        expires_at: now + DAY,
        created_at: now,
        updated_at: now,
      }),
    ]);
    return { id, token: `${id}-${secret}` };
  };

  /** Adds a running workspace and returns the token of its agent. */
  const addWorkspace = async (owner: Client, name: string) => {
    const created = await createWorkspace(owner, template.template_id, name);
    const workspace = await awaitBuild(owner, created.id);
    const token = uuid();
    const sql = "update agents set token_hash = ? where workspace_id = ? and name = 'dev'";
    await store.commit([{ sql: sql, rows: [[sha256(token), created.id]] }]);
    const agent = workspace.latest_build.resources[0]?.agents?.[0]?.id ?? "none";
    return { workspace: created.id, workspacebuild: workspace.latest_build.id, workspaceagent: agent, token };
  };

  /** Adds a chat of ada with a first message and a queued one; its turn hangs forever. */
  const addChat = async () => {
    const { id } = await ada.post<{ id: string }>("/api/v2/chats", { organization_id, content: toContent("hang: on") });
    const sent = await ada.post<{ queued_message: { id: number } }>(`/api/v2/chats/${id}/messages`, {
      content: toContent("and then"),
    });
    const { messages } = await ada.get<{ messages: { id: number }[] }>(`/api/v2/chats/${id}/messages`);
    return { chat: id, message: String(messages[0]?.id), queuedMessage: String(sent.queued_message.id) };
  };

  let created = 0;
  /** Adds an unused model provider with one model. */
  const addProvider = async () => {
    const name = `spare${++created}`;
    const providerBody = {
      provider: "openai-compat",
      display_name: name,
      base_url: "http://127.0.0.1:1/v1",
      api_key: "k",
    };
    const { id: provider } = await admin.post<{ id: string }>("/api/v2/chats/providers", providerBody);
    const model = { provider_id: provider, model: name, enabled: false, is_default: false };
    const { id: model_config } = await admin.post<{ id: string }>("/api/v2/chats/model-configs", model);
    // It is never called.
    await admin.patch(`/api/v2/chats/providers/${provider}`, { enabled: false });
    return { provider, model_config };
  };

  const addMcp = async () => {
    const oauth2 = {
      client_id: "c",
      auth_url: "https://mcp.invalid/in",
      token_url: "https://mcp.invalid/token",
      scopes: [],
    };
    const { id } = await admin.post<{ id: string }>("/api/v2/organizations/default/mcp-servers", {
      slug: `spare${++created}`,
      url: "https://mcp.invalid/",
      auth_type: "oauth2",
      oauth2,
    });
    return { mcp_server: id };
  };

  const addSecret = async () => {
    const secret = { name: `spare${++created}`, value: "of ada alone" };
    return { secret: (await ada.post<{ name: string }>("/api/v2/users/me/secrets", secret)).name };
  };

  const addDeployKey = async () => {
    const url = `https://git.invalid/acme/spare${++created}`;
    return { deploy_key: (await ada.post<{ id: string }>("/api/v2/users/me/deploy-keys", { url })).id };
  };

  /** Adds an application of the deployment, with a secret. */
  const addOAuth2App = async () => {
    const app = { name: `spare${++created}`, callback_url: "https://app.invalid/" };
    const { id } = await admin.post<{ id: string }>("/api/v2/oauth2-provider/apps", app);
    const secret = await admin.post<{ id: string }>(`/api/v2/oauth2-provider/apps/${id}/secrets`);
    return { oauth2_app: id, oauth2_secret: secret.id };
  };

  /** Adds a grant of ada to an application. */
  const addGrant = async () => {
    const { oauth2_app } = await addOAuth2App();
    const grant = (await addKey(people.ada.user_id, `spare${++created}`, "oauth2_provider_app")).id;
    const now = clock.now();
    const codeFields = {
      key_id: grant,
      app_id: oauth2_app,
      user_id: people.ada.user_id,
      scopes: ["all"],
      redirect_uri: "",
    };
    const times = { code_expires_at: now, created_at: now, updated_at: now, redeemed_at: now };
    await store.commit([insertOAuth2Grant({ ...codeFields, ...times, code_hash: grant, code_challenge: "" })]);
    return { grant };
  };

  /** Adds a task of ada whose workspace exists and whose chat has not started. */
  const addTask = async () => {
    const body = { input: "hang: on", name: `task${++created}`, template_id: template.template_id };
    const task = await ada.post<{ id: string; workspace_id: { uuid: string } }>("/api/v2/tasks/me", body);
    await awaitBuild(ada, task.workspace_id.uuid);
    return { task: task.id };
  };

  const addSkill = async () => {
    const skill = { name: `spare${++created}`, description: "d", content: "c" };
    return { skill: (await ada.post<{ id: string }>("/api/v2/users/me/skills", skill)).id };
  };

  /** Adds a finished dry run of ada. */
  const addDryRun = async (): Promise<string> => {
    const path = `/api/v2/templateversions/${template.version_id}/dry-run`;
    const { id } = await ada.post<{ id: string }>(path, { workspace_name: "try" });
    using socket = await ada.socket(`${path}/${id}/logs?follow=true`);
    await socket.closed;
    return id;
  };

  // Chats keep using the built-in model while other providers come and go.
  await admin.post("/api/v2/chats/providers", { provider: "demo", display_name: "demo", enabled: true });
  await admin.post("/api/v2/chats/model-configs", { provider: "demo", model: "demo", enabled: true, is_default: true });

  const { token: agent, ...adasObjects } = await addWorkspace(ada, "dev");
  const { token: otherAgent } = await addWorkspace(bob, "dev");
  const { id: key } = await addKey(people.ada.user_id, "ci");
  await admin.post("/api/v2/organizations/default/provisionerkeys", { name: "worker" });
  const { id: group } = await admin.post<{ id: string }>("/api/v2/organizations/default/groups", { name: "makers" });
  const headers = { "Content-Type": "application/x-tar" };
  const { hash: file } = await admin.post<{ hash: string }>("/api/v2/files", new Uint8Array(1024), { headers });

  const { id: chat_file } = await ada.post<{ id: string }>(
    `/api/v2/chats/files?organization=${organization_id}`,
    "hello",
    { headers: { "Content-Type": "text/plain", "Content-Disposition": 'attachment; filename="hello.txt"' } },
  );

  const things: TestObjects = {
    user: "ada",
    organization: "default",
    template: template.template_id,
    templateversion: template.version_id,
    ...adasObjects,
    ...(await addChat()),
    key,
    workspacename: "dev",
    buildnumber: "1",
    status: "suspend",
    zoe: people.zoe.user_id,
    bob: people.bob.user_id,
    organization_id,
    group,
    groupName: "makers",
    file,
    id: uuid(),
    ...(await addTask()),
    ...(await addSecret()),
    ...(await addDeployKey()),
    ...(await addOAuth2App()),
    ...(await addGrant()),
    name: "ci",
    ...(await addMcp()),
    ...(await addSkill()),
    externalauth: PROVIDER.id,
    fresh: "nothing-yet",
    ...(await addProvider()),
    chat_file,
    job: await addDryRun(),
  };

  const tokens: Record<CallerName, string | undefined> = {
    stranger: undefined,
    agent,
    "other agent": otherAgent,
    foreigner: people.zoe.token,
    colleague: people.bob.token,
    ada: people.ada.token,
    admin: admin.token,
  };
  const strangers: Record<(typeof STRANGERS)[number], string | undefined> = {
    none: undefined,
    expired,
    revoked: revoked.token,
    wrong: `${(admin.token as string).slice(0, -1)}${admin.token?.endsWith("x") ? "y" : "x"}`,
  };
  const userIds: Partial<Record<CallerName, string>> = {
    foreigner: people.zoe.user_id,
    colleague: people.bob.user_id,
    ada: people.ada.user_id,
  };

  /** Objects that a call uses up, recreated for each allowed caller. */
  const makers = {
    user: async () => ({ user: (await seedUser(server, { username: `spare${++created}`, organization_id })).user_id }),
    key: async () => ({ key: (await addKey(people.ada.user_id, `spare${++created}`)).id }),
    signin: async () => ({ session: (await addKey(people.ada.user_id, `spare${++created}`, "password")).id }),
    session: async (caller: CallerName) => {
      const id = userIds[caller];
      return id
        ? { caller: (await addKey(id, `spare${++created}`)).token }
        : { caller: (await anonymous.signIn(ADMIN.email, ADMIN.password)).token as string };
    },
    organization: async () => {
      const name = `spare${++created}`;
      await admin.post("/api/v2/organizations", { name });
      return { organization: name };
    },
    group: async () => {
      const { id } = await admin.post<{ id: string }>("/api/v2/organizations/default/groups", {
        name: `spare${++created}`,
      });
      return { group: id };
    },
    template: async () => {
      const { template_id, version_id } = await seedTemplate(server);
      return { template: template_id, templateversion: version_id };
    },
    provisionerkey: async () => {
      const name = `spare${++created}`;
      await admin.post("/api/v2/organizations/default/provisionerkeys", { name });
      return { key: name };
    },
    workspace: async () => {
      const workspacename = `spare${++created}`;
      return { workspacename, ...(await addWorkspace(ada, workspacename)) };
    },
    chat: addChat,
    share: async () => {
      const share = { agent_name: "dev", port: 8080, protocol: "http", share_level: "owner" };
      await ada.post<unknown>(`/api/v2/workspaces/${adasObjects.workspace}/port-share`, share);
      return {};
    },
    provider: addProvider,
    mcp: addMcp,
    skill: addSkill,
    task: addTask,
    secret: addSecret,
    deploykey: addDeployKey,
    oauth2app: addOAuth2App,
    grant: addGrant,
    name: async () => ({ fresh: `spare${++created}` }),
  } satisfies Record<string, (caller: CallerName) => Promise<TestObjects>>;

  return {
    server,
    things,
    tokens,
    strangers: strangers,
    makers,
    clock,
    operations: listOperations(await fetchDocument(server.url)),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
};

export type MatrixWorld = Awaited<ReturnType<typeof openMatrixWorld>>;
export type MakerName = keyof MatrixWorld["makers"];
