// Templates and workspaces for tests, created the short way: a template version is written to the store as an import would do it, and
// everything else goes through the public client.
import { sha256, uuid } from "#base/ids.ts";
import { insertFile } from "#db/templates/files.ts";
import { insertTemplate } from "#db/templates/templates.ts";
import { insertTemplateVersion, manifestColumns } from "#db/templates/versions.ts";
import { findDefaultOrganization } from "#db/users/organizations.ts";
import { findUserByName } from "#db/users/users.ts";
import { insertJob } from "#db/workspaces/jobs.ts";
import type { Manifest } from "#schema/templates/manifest.ts";
import type { CreateTemplate } from "#schema/templates/template.ts";
import type { Build } from "#schema/workspaces/build.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { Client, type ClientSocket } from "#src/client.ts";
import { ADMIN, startTestServer, type TestServer, type TestServerOptions } from "./server.ts";
import { makeTemplate } from "./templates.ts";

export type SeededTemplate = { template_id: string; version_id: string; organization_id: string };

/** Template columns that a test may set. Columns that no request can set need a server in this process. */
export type SeedColumns = Partial<Parameters<typeof insertTemplate>[0] & { template_id: string }>;

/** The smallest template: one resource with one agent, and nothing that runs. */
export const ECHO: Manifest = {
  provisioner: "echo",
  resources: [{ name: "main", agents: [{ name: "dev", os: "linux", arch: "amd64" }] }],
};

/** Creates a template of the default organization whose active version has this manifest. */
export const seedTemplate = async (
  server: TestServer,
  manifest: Manifest = ECHO,
  columns: SeedColumns = {},
): Promise<SeededTemplate> => {
  if (!server.context) return uploadTemplate(server, manifest, columns);
  const { store, clock } = server.context;
  const organization = await store.get(findDefaultOrganization());
  const admin = await store.get(findUserByName({ username: ADMIN.username }));
  if (!organization || !admin) throw new Error("the server has no first user");
  const now = clock.now();
  const [template_id, version_id, job_id, file_id] = [uuid(), uuid(), uuid(), uuid()];
  const times = { created_at: now, updated_at: now };
  const organization_id = organization.id;
  await store.commit([
    insertFile({
      id: file_id,
      hash: sha256(file_id),
      created_by: admin.id,
      mimetype: "application/x-tar",
      size: 1,
      created_at: now,
    }),
    insertTemplate({
      id: template_id,
      organization_id,
      name: `t-${template_id.slice(0, 8)}`,
      provisioner: manifest.provisioner,
      active_version_id: version_id,
      created_by: admin.id,
      ...times,
      ...columns,
    }),
    insertJob({
      key: await store.reserve("jobs", 1),
      id: job_id,
      organization_id,
      initiator_id: admin.id,
      type: "template_version_import",
      provisioner: manifest.provisioner,
      file_id,
      input: { template_version_id: version_id },
      ...times,
      started_at: now,
      completed_at: now,
    }),
    insertTemplateVersion({
      id: version_id,
      template_id,
      organization_id,
      name: "first",
      job_id,
      file_id,
      created_by: admin.id,
      ...times,
      ...manifestColumns(manifest),
    }),
  ]);
  return { template_id, version_id, organization_id };
};

/** Creates the template over HTTP, for a server in another process. */
const uploadTemplate = async (
  server: TestServer,
  manifest: Manifest,
  { deprecation_message, ...columns }: SeedColumns & { deprecation_message?: string },
): Promise<SeededTemplate> => {
  const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  const name = `t-${uuid().slice(0, 8)}`;
  const created = await makeTemplate(admin, JSON.stringify(manifest), { name, ...columns } as Partial<CreateTemplate>);
  if (deprecation_message !== undefined) await admin.patch(`/api/v2/templates/${created.id}`, { deprecation_message });
  return { template_id: created.id, version_id: created.active_version_id, organization_id: created.organization_id };
};

export type World = AsyncDisposable & { readonly server: TestServer; readonly admin: Client };

/** Starts a server with its first user signed in. */
export const openWorld = async (options: TestServerOptions = {}): Promise<World> => {
  const server = await startTestServer(options);
  const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  return { server, admin, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
};

/** Creates a workspace of the caller and returns it with its build queued. */
export const createWorkspace = (client: Client, template_id: string, name = "dev", fields: object = {}) =>
  client.post<Workspace>("/api/v2/users/me/workspaces", { name, template_id, ...fields });

/** Watches a workspace until `when` holds, and returns it. */
export const awaitWorkspace = async (
  client: Client,
  id: string,
  when: (workspace: Workspace) => boolean,
): Promise<Workspace> => {
  using socket = await client.socket(`/api/v2/workspaces/${id}/watch-ws`).catch(() => undefined);
  if (!socket) {
    // A deleted workspace cannot be watched, and this one may have been deleted in the meantime.
    const deleted = await client.get<Workspace>(`/api/v2/workspaces/${id}?include_deleted=true`);
    if (when(deleted)) return deleted;
    throw new Error(`cannot watch the workspace: its status is ${deleted.latest_build.status}`);
  }
  for (;;) {
    const message = await socket.json<{ type: string; data: Workspace }>();
    if (message.type === "data" && when(message.data)) return message.data;
  }
};

const FINAL = ["running", "stopped", "deleted", "failed", "canceled"];

/** Returns the workspace once its latest build has ended. */
export const awaitBuild = (client: Client, id: string): Promise<Workspace> =>
  awaitWorkspace(client, id, ({ latest_build }) => FINAL.includes(latest_build.status));

export const createBuild = (client: Client, id: string, transition: string, fields: object = {}): Promise<Build> =>
  client.post<Build>(`/api/v2/workspaces/${id}/builds`, { transition, ...fields });

/** Returns all text messages until the socket closes, and the reason it closed. */
export const drainSocket = async (
  socket: ClientSocket,
): Promise<{ messages: unknown[]; closed: { code: number; reason: string } }> => {
  const messages: unknown[] = [];
  for await (const message of socket) messages.push(JSON.parse(message as string));
  return { messages, closed: await socket.closed };
};
