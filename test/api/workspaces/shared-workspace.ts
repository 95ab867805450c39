// One workspace and all kinds of callers, for tests of access.
import { sha256, uuid } from "#base/ids.ts";
import { updateMember } from "#db/users/members.ts";
import type { Manifest } from "#schema/templates/manifest.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import type { Client } from "#src/client.ts";
import { getContext, seedUser } from "#test/support/seed.ts";
import type { TestServerOptions } from "#test/support/server.ts";
import { awaitBuild, createWorkspace, ECHO, openWorld, seedTemplate } from "#test/support/workspaces.ts";

/** All callers, in the order of the matrix of statuses. */
export const CALLERS = [
  "guest",
  "owner",
  "shared admin",
  "shared use",
  "member",
  "template admin",
  "organization admin",
  "auditor",
  "site owner",
  "agent",
] as const;
export type CallerName = (typeof CALLERS)[number];

/** A running workspace `dev` of ada, shared with `amy` (role admin) and `uma` (role use). */
export const openSharedWorkspace = async (options: TestServerOptions & { manifest?: Manifest } = {}) => {
  const world = await openWorld(options);
  const { server, admin } = world;
  const { template_id, version_id, organization_id } = await seedTemplate(server, options.manifest ?? ECHO);
  const { store } = getContext(server);
  const ids: Record<string, string> = {};
  const createClient = async (username: string, roles: string[] = []): Promise<Client> => {
    const { token, user_id } = await seedUser(server, { username, roles, organization_id });
    ids[username] = user_id;
    return admin.withToken(token);
  };
  const ada = await createClient("ada");
  const clientsOfUsers = {
    guest: admin.withToken(undefined),
    owner: ada,
    "shared admin": await createClient("amy"),
    "shared use": await createClient("uma"),
    member: await createClient("bob"),
    "template admin": await createClient("tia", ["template-admin"]),
    "organization admin": await createClient("ora"),
    auditor: await createClient("aud", ["auditor"]),
    "site owner": admin,
  };
  await store.commit([
    updateMember({ organization_id, user_id: ids.ora as string, roles: ["organization-admin"], updated_at: 0 }),
  ]);
  const { id } = await createWorkspace(ada, template_id);
  const workspace: Workspace = await awaitBuild(ada, id);
  const token = uuid();
  await store.commit([
    { sql: "update agents set token_hash = ? where workspace_id = ? and name = 'dev'", rows: [[sha256(token), id]] },
  ]);
  await ada.patch(`/api/v2/workspaces/${id}/acl`, {
    user_roles: { [ids.amy as string]: "admin", [ids.uma as string]: "use" },
  });
  const clients: Record<CallerName, Client> = { ...clientsOfUsers, agent: admin.withToken(token) };
  const getId = (username: string): string => {
    const id = ids[username];
    if (!id) throw new Error(`there is no user ${username}`);
    return id;
  };
  return {
    world,
    server,
    clients,
    workspace,
    id,
    template_id,
    version_id,
    organization_id,
    idOf: getId,
    token,
    path: `/api/v2/workspaces/${id}`,
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  };
};
