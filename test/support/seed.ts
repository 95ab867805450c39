// Workspaces and agents written directly to the store, for tests of agents after a build has created them. Needs a server in this process
// (test/support/server.ts).
import { sha256, uuid } from "#base/ids.ts";
import { toShard } from "#base/shards.ts";
import { insertAgent } from "#db/agents/agents.ts";
import { insertAgentApp } from "#db/agents/apps.ts";
import { insertAgentMetadata } from "#db/agents/metadata.ts";
import { insertAgentScript } from "#db/agents/scripts.ts";
import { insertInto, type Statement, updateBy } from "#db/engine/sql.ts";
import type { agent_apps, agent_metadata, agent_scripts, agents } from "#db/schema/agents.ts";
import { templates } from "#db/schema/templates.ts";
import { workspace_resources, workspaces } from "#db/schema/workspaces.ts";
import { insertKey } from "#db/users/api-keys.ts";
import { insertMember } from "#db/users/members.ts";
import { insertOrganization } from "#db/users/organizations.ts";
import { insertUser } from "#db/users/users.ts";
import { Client } from "#src/client.ts";
import { ADMIN, type TestServer } from "./server.ts";

const insertTemplate = insertInto(templates);
const insertWorkspace = insertInto(workspaces);
const insertResource = insertInto(workspace_resources);
const updateWorkspace = updateBy(workspaces, workspaces.id);

type Column<T extends { $inferInsert: object }> = Partial<T["$inferInsert"]>;

export type SeedOptions = {
  /** The template's provisioner; by default `echo`, which runs nothing. */
  provisioner?: string;
  agent?: Column<typeof agents>;
  apps?: Column<typeof agent_apps>[];
  scripts?: Column<typeof agent_scripts>[];
  metadata?: (Column<typeof agent_metadata> & { key: string })[];
};

export type SeededAgent = {
  workspace_id: string;
  build_id: string;
  resource_id: string;
  agent_id: string;
  agent_key: number;
  agent_token: string;
  owner_id: string;
  /** A session of the workspace's owner, who has no roles. */
  owner_token: string;
  organization_id: string;
};

/** Returns the context of a test server in this process. */
export const getContext = (server: TestServer) => {
  if (!server.context) throw new Error("this test needs a server in the test's process");
  return server.context;
};

/** Returns the context of the active node that owns this ID's shard. */
export const getOwnerContext = (server: TestServer, id: string) => {
  const found = server.contexts.find(({ shards }) => shards.has(toShard(id)));
  if (!found) throw new Error("no node in this process has the shard");
  return found;
};

/** Creates a user with a session as a member of the organization; by default in a new organization. */
export const seedUser = async (
  server: TestServer,
  options: { username?: string; roles?: string[]; organization_id?: string } = {},
): Promise<{ user_id: string; token: string; organization_id: string }> => {
  if (!server.context) return makeUser(server, options);
  const { store, clock } = server.context;
  const now = clock.now();
  const times = { created_at: now, updated_at: now };
  const username = options.username ?? `user-${uuid().slice(0, 8)}`;
  const user_id = uuid();
  const organization_id = options.organization_id ?? uuid();
  const id = uuid().replaceAll("-", "").slice(0, 10);
  const secret = uuid().replaceAll("-", "").slice(0, 22);
  const name = `org-${organization_id.slice(0, 8)}`;
  await store.commit([
    ...(options.organization_id
      ? []
      : [insertOrganization({ id: organization_id, name, display_name: name, ...times })]),
    insertUser({
      id: user_id,
      email: `${username}@example.com`,
      username,
      status: "active",
      login_type: "none",
      roles: options.roles ?? [],
      ...times,
    }),
    insertMember({ organization_id, user_id, roles: [], ...times }),
    insertKey({
      id,
      user_id,
      secret_hash: sha256(secret),
      login_type: "token",
      scope: "all",
      lifetime_seconds: 86_400,
      last_used: now,
      expires_at: now + 86_400_000,
      ...times,
    }),
  ]);
  return { user_id, token: `${id}-${secret}`, organization_id };
};

/** Creates the user over HTTP, for a server in another process. */
const makeUser = async (
  server: TestServer,
  options: { username?: string; roles?: string[]; organization_id?: string },
): Promise<{ user_id: string; token: string; organization_id: string }> => {
  const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  const name = `org-${uuid().slice(0, 8)}`;
  const organization_id =
    options.organization_id ?? (await admin.post<{ id: string }>("/api/v2/organizations", { name })).id;
  const username = options.username ?? `user-${uuid().slice(0, 8)}`;
  const [email, password] = [`${username}@example.com`, `of ${username}, ${uuid()}`];
  const account = { email, username, password, login_type: "password", organization_ids: [organization_id] };
  const { id } = await admin.post<{ id: string }>("/api/v2/users", account);
  if (options.roles?.length) await admin.put(`/api/v2/users/${id}/roles`, { roles: options.roles });
  const { token = "" } = await new Client(server.url).signIn(email, password);
  return { user_id: id, token, organization_id };
};

/** Creates a workspace with one agent whose build is the latest. */
export const seedAgent = async (server: TestServer, options: SeedOptions = {}): Promise<SeededAgent> => {
  const { store, clock } = getContext(server);
  const now = clock.now();
  const owner = await seedUser(server);
  const { organization_id } = owner;
  const times = { created_at: now, updated_at: now };
  const [template_id, workspace_id, build_id, resource_id, agent_id, agent_token] = Array.from({ length: 6 }, uuid) as [
    string,
    string,
    string,
    string,
    string,
    string,
  ];
  const agent_key = await store.reserve("agents", 1);
  const writes: Statement[] = [
    insertTemplate({
      id: template_id,
      organization_id,
      name: `t-${template_id.slice(0, 8)}`,
      provisioner: options.provisioner ?? "echo",
      active_version_id: uuid(),
      created_by: owner.user_id,
      ...times,
    }),
    insertWorkspace({
      id: workspace_id,
      owner_id: owner.user_id,
      organization_id,
      template_id,
      name: "dev",
      last_used_at: now,
      latest_build_id: build_id,
      ...times,
    }),
    insertResource({
      id: resource_id,
      job_id: uuid(),
      transition: "start",
      type: "process",
      name: "main",
      created_at: now,
    }),
    insertAgent({
      key: agent_key,
      id: agent_id,
      workspace_id,
      build_id,
      resource_id,
      name: "main",
      token_hash: sha256(agent_token),
      architecture: "amd64",
      operating_system: "linux",
      ...times,
      ...options.agent,
    }),
  ];
  for (const [i, app] of (options.apps ?? []).entries()) {
    writes.push(insertAgentApp({ id: uuid(), agent_id, slug: `app-${i}`, ...app }));
  }
  for (const [i, script] of (options.scripts ?? []).entries()) {
    writes.push(
      insertAgentScript({
        id: uuid(),
        agent_id,
        log_source_id: uuid(),
        display_name: `script ${i}`,
        script: "true",
        ...script,
      }),
    );
  }
  for (const metadata of options.metadata ?? []) {
    writes.push(
      insertAgentMetadata({
        agent_id,
        display_name: metadata.key,
        script: "true",
        interval: 10,
        timeout: 5,
        ...metadata,
      }),
    );
  }
  await store.commit(writes);
  return {
    workspace_id,
    build_id,
    resource_id,
    agent_id,
    agent_key,
    agent_token,
    owner_id: owner.user_id,
    owner_token: owner.token,
    organization_id,
  };
};

/** Does to an agent what a newer build does: invalidates its token, and publishes that. */
export const supersedeAgent = async (server: TestServer, seeded: SeededAgent): Promise<void> => {
  const { store, topics } = getContext(server);
  await store.commit([updateWorkspace(seeded.workspace_id, { latest_build_id: uuid() })]);
  topics.publish("agent_gone", seeded.agent_id, {});
};
