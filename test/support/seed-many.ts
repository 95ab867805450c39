// A large deployment written directly to a store: 10,000 workspaces of 200 owners and 200 templates, in every status. Used by list tests
// and the benchmark, and by hand on the data of a stopped server: `bun test/support/seed-many.ts <data dir>`.
import { systemClock } from "#base/clock.ts";
import { sha256, uuid } from "#base/ids.ts";
import { insertAgent } from "#db/agents/agents.ts";
import { openLocalStore } from "#db/engine/local.ts";
import { insertInto, type Statement } from "#db/engine/sql.ts";
import type { Store } from "#db/engine/store.ts";
import { workspace_resources } from "#db/schema/workspaces.ts";
import { insertFile } from "#db/templates/files.ts";
import { insertTemplate } from "#db/templates/templates.ts";
import { insertTemplateVersion } from "#db/templates/versions.ts";
import { insertMember } from "#db/users/members.ts";
import { findDefaultOrganization } from "#db/users/organizations.ts";
import { insertUser } from "#db/users/users.ts";
import { insertBuild, insertBuildParameters } from "#db/workspaces/builds.ts";
import { insertJob } from "#db/workspaces/jobs.ts";
import { insertWorkspace } from "#db/workspaces/workspaces.ts";
import { PREBUILDS_USER_ID } from "#schema/workspaces/prebuilds.ts";

const insertResource = insertInto(workspace_resources);

export type SeededMany = {
  readonly organization_id: string;
  /** IDs of the users `owner-0`, `owner-1` and so on. */
  readonly owners: readonly string[];
  readonly templates: readonly string[];
  /** IDs of the workspaces `ws-00000`, `ws-00001` and so on, in that order. */
  readonly workspaces: readonly string[];
};

export type Size = { readonly workspaces?: number; readonly templates?: number; readonly owners?: number };

/** Rows of owners or workspaces per commit. */
const BATCH_SIZE = 200;

const MANIFEST = JSON.stringify({ provisioner: "echo", resources: [{ name: "main", agents: [{ name: "main" }] }] });

/** Every tenth is stopped, every twentieth has failed, every fiftieth is pending; the others are running. */
const toBuildState = (i: number): "running" | "stopped" | "failed" | "pending" =>
  i % 50 === 49 ? "pending" : i % 20 === 18 ? "failed" : i % 10 === 5 ? "stopped" : "running";

/** Fills the store of a server that has its first organization. */
export const seedMany = async (store: Store, now: number, size: Size = {}): Promise<SeededMany> => {
  const { workspaces: workspaceCount = 10_000, templates: templateCount = 200, owners: ownerCount = 200 } = size;
  const organization = await store.get(findDefaultOrganization());
  if (!organization) throw new Error("the server has not been started before");
  const organization_id = organization.id;
  const timestamps = { created_at: now, updated_at: now };
  const owners = Array.from({ length: ownerCount }, uuid);
  for (let start = 0; start < ownerCount; start += BATCH_SIZE) {
    await store.commit(
      owners.slice(start, start + BATCH_SIZE).flatMap((id, i): Statement[] => {
        const username = `owner-${start + i}`;
        const account = {
          id,
          username,
          email: `${username}@example.com`,
          status: "active" as const,
          login_type: "none",
        };
        return [
          insertUser({ ...account, roles: [], ...timestamps }),
          insertMember({ organization_id, user_id: id, roles: [], ...timestamps }),
        ];
      }),
    );
  }
  const file_id = uuid();
  const created_by = PREBUILDS_USER_ID;
  const file = { id: file_id, hash: sha256(file_id), mimetype: "application/x-tar", size: 1, created_by };
  await store.commit([insertFile({ ...file, created_at: now })]);
  const versions = Array.from({ length: templateCount }, uuid);
  const templates = Array.from({ length: templateCount }, uuid);
  const import_keys = await store.reserve("jobs", templateCount);
  await store.commit(
    templates.flatMap((id, i): Statement[] => {
      const version_id = versions[i] as string;
      const common = { organization_id, created_by, ...timestamps };
      const job = { id: uuid(), key: import_keys + i, organization_id, initiator_id: created_by, file_id };
      const type = "template_version_import";
      const input = { template_version_id: version_id };
      const jobTimes = { started_at: now, completed_at: now };
      const name = `kind-${i}`;
      return [
        insertJob({ ...job, type, provisioner: "echo", input, ...jobTimes, ...timestamps }),
        insertTemplate({ ...common, id, name, provisioner: "echo", active_version_id: version_id }),
        insertTemplateVersion({
          ...common,
          id: version_id,
          template_id: id,
          name: "v1",
          job_id: job.id,
          file_id,
          manifest: MANIFEST,
        }),
      ];
    }),
  );
  const ids = Array.from({ length: workspaceCount }, uuid);
  for (let start = 0; start < workspaceCount; start += BATCH_SIZE) {
    const batch = ids.slice(start, start + BATCH_SIZE);
    const keys = {
      job: await store.reserve("jobs", batch.length),
      agent: await store.reserve("agents", batch.length),
    };
    const rows = batch.flatMap((id, i): Statement[] => {
      const n = start + i;
      const [owner_id, templateIndex] = [owners[n % ownerCount] as string, n % templateCount];
      const [build_id, job_id, resource_id] = [uuid(), uuid(), uuid()];
      const state = toBuildState(n);
      const transition = state === "stopped" ? "stop" : "start";
      const jobTimes = state === "pending" ? {} : { started_at: now, completed_at: now };
      const jobError = state === "failed" ? { error: "no room" } : {};
      const name = `ws-${String(n).padStart(5, "0")}`;
      const job = { id: job_id, key: keys.job + i, organization_id, initiator_id: owner_id, file_id };
      const build = { id: build_id, workspace_id: id, build_number: 1, job_id, initiator_id: owner_id };
      const version = { template_version_id: versions[templateIndex] as string };
      return [
        insertWorkspace({
          id,
          owner_id,
          organization_id,
          template_id: templates[templateIndex] as string,
          name,
          latest_build_id: build_id,
          status: state,
          last_used_at: now - n * 1_000,
          ...timestamps,
        }),
        insertJob({
          ...job,
          type: "workspace_build",
          provisioner: "echo",
          input: { workspace_build_id: build_id },
          ...jobTimes,
          ...jobError,
          ...timestamps,
        }),
        insertBuild({ ...build, ...version, transition, reason: "initiator", ...timestamps }),
        insertBuildParameters([{ build_id, name: "size", value: n % 2 === 0 ? "big" : "small" }]),
        ...(state === "running"
          ? [
              insertResource({
                id: resource_id,
                job_id,
                transition,
                type: "echo_workspace",
                name: "main",
                created_at: now,
              }),
              insertAgent({
                key: keys.agent + i,
                id: uuid(),
                workspace_id: id,
                build_id,
                resource_id,
                name: "main",
                architecture: "amd64",
                operating_system: "linux",
                token_hash: sha256(id),
                ...timestamps,
              }),
            ]
          : []),
      ];
    });
    await store.commit(rows);
  }
  return { organization_id, owners, templates, workspaces: ids };
};

if (import.meta.main) {
  const [directory, workspaces] = process.argv.slice(2);
  if (!directory) throw new Error("usage: bun test/support/seed-many.ts <data dir> [workspaces]");
  const now = systemClock.now();
  const store = openLocalStore({ directory, cacheMb: 64, now, fatal: (error) => process.stderr.write(`${error}\n`) });
  const created = await seedMany(store, now, workspaces ? { workspaces: Number(workspaces) } : {});
  await store.close();
  process.stdout.write(`${created.workspaces.length} workspaces, ${created.templates.length} templates\n`);
}
