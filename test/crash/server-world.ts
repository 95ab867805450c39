// Fills a new server of a test through its API: templates of the provisioner `echo`, which starts nothing (agents and their tokens are in
// the manifest), and workspaces created from them.

import type { Manifest } from "#schema/templates/manifest.ts";
import type { Build } from "#schema/workspaces/build.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import type { Client } from "#src/client.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { ADMIN } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import { call, read, retryUntilAnswered } from "./oracle/calls.ts";
import { LogWriter } from "./oracle/log-writer.ts";
import type { ServerSlot } from "./server.ts";

export type World = {
  admin: Client;
  organization_id: string;
};

/** Signs the first user in; sessions survive the server. */
export const signInAdmin = async (place: Pick<ServerSlot, "client">): Promise<World> => {
  const admin = await place.client.signIn(ADMIN.email, ADMIN.password);
  const [organization] = await admin.get<{ id: string }[]>("/api/v2/users/me/organizations");
  if (!organization) throw new Error("the server has no organization");
  return { admin, organization_id: organization.id };
};

/** Returns a template archive with this manifest; JSON is also YAML. */
export const templateTar = (manifest: Manifest): Promise<Uint8Array> =>
  new Bun.Archive({ "template.yaml": JSON.stringify(manifest) }).bytes();

/** Uploads a manifest, waits for its import and creates a template from it. */
export const makeTemplate = async (
  { admin, organization_id }: World,
  name: string,
  manifest: Manifest,
): Promise<string> => {
  const headers = { "content-type": "application/x-tar" };
  const upload = await admin.fetch("POST", "/api/v2/files", await templateTar(manifest), { headers });
  const { hash } = (await upload.json()) as { hash: string };
  const version = await admin.post<{ id: string }>(`/api/v2/organizations/${organization_id}/templateversions`, {
    storage_method: "file",
    file_id: hash,
    provisioner: manifest.provisioner,
  });
  await until(async () => {
    const { job } = await read<{ job: { status: string; error?: string } }>(
      admin,
      `/api/v2/templateversions/${version.id}`,
    );
    if (job.status === "failed") throw new Error(`the import failed: ${job.error}`);
    return job.status === "succeeded";
  });
  const template = await admin.post<{ id: string }>(`/api/v2/organizations/${organization_id}/templates`, {
    name,
    template_version_id: version.id,
  });
  return template.id;
};

/** Returns the promise's result, or throws an error that says what did not happen, so that a test that hangs shows where. */
export const withTimeout = async <T>(event: string, promise: Promise<T>, timeoutMs = 40_000): Promise<T> => {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const limitMs = scaleTimeout(timeoutMs);
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${event}: did not happen within ${limitMs} ms`)), limitMs);
  });
  try {
    return await Promise.race([promise, timeout]);
  } finally {
    clearTimeout(timer);
  }
};

/** Returns the build once it has ended, with any result. */
export const waitForBuild = async (admin: Client, id: string): Promise<Build> => {
  let build: Build | undefined;
  await until(async () => {
    build = await read<Build>(admin, `/api/v2/workspacebuilds/${id}`);
    return build.job.completed_at !== undefined;
  });
  return build as Build;
};

/** Creates a workspace and waits for its first build, which must succeed. */
export const makeWorkspace = async (admin: Client, name: string, template_id: string): Promise<Workspace> => {
  const created = await admin.post<Workspace>("/api/v2/users/me/workspaces", { name, template_id });
  const build = await waitForBuild(admin, created.latest_build.id);
  if (build.job.status !== "succeeded") throw new Error(`the build of ${name} ended: ${build.job.error}`);
  return await read<Workspace>(admin, `/api/v2/workspaces/${created.id}`);
};

export type EchoAgent = { agent_id: string; workspace_id: string; client: Client };

/** Creates agents of one new workspace, each with its token. No daemon runs, so a test can act as the agent. */
export const makeAgents = async (
  world: World,
  name: string,
  count: number,
  owner = world.admin,
): Promise<EchoAgent[]> => {
  const tokens = new Map(Array.from({ length: count }, (_, i) => [`agent-${i}`, crypto.randomUUID() as string]));
  const agents = [...tokens].map(([agent, token]) => ({ name: agent, token }));
  const template = await makeTemplate(world, name, { provisioner: "echo", resources: [{ name: "group", agents }] });
  const workspace = await makeWorkspace(owner, name, template);
  return workspace.latest_build.resources
    .flatMap((resource) => resource.agents ?? [])
    .map((agent) => ({
      agent_id: agent.id,
      workspace_id: workspace.id,
      client: world.admin.withToken(tokens.get(agent.name)),
    }));
};

/** Creates a writer for each agent, with its own log sources. */
export const makeWriters = async (
  agents: readonly EchoAgent[],
  random: () => number,
  acknowledged?: () => void,
  sources = 3,
): Promise<LogWriter[]> =>
  Promise.all(
    agents.map(async ({ agent_id, client }, i) => {
      const source_ids = Array.from({ length: sources }, () => crypto.randomUUID() as string);
      for (const id of source_ids) {
        const source = { id, display_name: `Source ${id.slice(0, 4)}`, icon: "" };
        await retryUntilAnswered(() => call(client, "POST", "/api/v2/workspaceagents/me/log-source", source));
      }
      return new LogWriter({ name: `w${i}`, agent_id, client, source_ids, random, onAcknowledged: acknowledged });
    }),
  );
