// How the API shows template declarations and build results.
import { expect, test } from "bun:test";
import { updateBy } from "#db/engine/sql.ts";
import { users } from "#db/schema/users.ts";
import type { AuditLog } from "#schema/audit.ts";
import type { Build } from "#schema/workspaces/build.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { getContext } from "#test/support/seed.ts";
import { awaitBuild, createWorkspace, openWorld, seedTemplate } from "#test/support/workspaces.ts";

test("[WK-30] the workspace shows resources, scripts and apps as the template declares them", async () => {
  await using world = await openWorld();
  const app = {
    slug: "top",
    display_name: "Top",
    command: "top",
    hidden: true,
    group: "Tools",
    icon: "/emojis/1f310.png",
    tooltip: "What runs",
    open_in: "tab" as const,
    share: "organization" as const,
  };
  const page = { slug: "page", url: "https://pages.example/", external: true, subdomain: false };
  const script = {
    display_name: "Hourly",
    script: "date",
    cron: "0 0 * * * *",
    log_path: "/tmp/hourly.log",
    timeout: 5,
  };
  const { template_id } = await seedTemplate(world.server, {
    provisioner: "echo",
    resources: [
      { name: "machine", icon: "/emojis/1f310.png", agents: [{ name: "dev", apps: [app, page], scripts: [script] }] },
      { name: "key", hide: true },
    ],
  });
  const { id } = await createWorkspace(world.admin, template_id);
  const { latest_build } = await awaitBuild(world.admin, id);
  const build = { job_id: latest_build.job.id, workspace_transition: "start" };
  const [machine, key] = ["machine", "key"].map((name) =>
    latest_build.resources.find((resource) => resource.name === name),
  );
  expect(machine).toMatchObject({ ...build, hide: false, icon: "/emojis/1f310.png" });
  expect(key).toMatchObject({ ...build, hide: true, agents: [] });
  const agent = machine?.agents[0];
  const { share, ...top } = app;
  const findApp = (slug: string) => agent?.apps.find((candidate) => candidate.slug === slug);
  expect(findApp("top")).toMatchObject({ ...top, sharing_level: share, url: "", external: false, statuses: [] });
  expect(findApp("page")).toMatchObject({ ...page, command: "", hidden: false, open_in: "slim-window", group: "" });
  expect(agent?.scripts).toHaveLength(1);
  expect(agent?.scripts[0]).toMatchObject({
    script: "date",
    cron: "0 0 * * * *",
    log_path: "/tmp/hourly.log",
    run_on_start: false,
    run_on_stop: false,
    log_source_id: agent?.log_sources.find(({ display_name }) => display_name === "Hourly")?.id ?? "none",
  });
});

test("[WK-30] a build shows its workspace, owner, initiator and version; its job shows the file and the build", async () => {
  await using world = await openWorld();
  const { admin } = world;
  const { template_id, version_id } = await seedTemplate(world.server);
  const { id } = await createWorkspace(admin, template_id);
  const workspace: Workspace = await awaitBuild(admin, id);
  const me = await admin.get<{ id: string; username: string }>("/api/v2/users/me");
  const build = workspace.latest_build;
  expect(build).toMatchObject({
    workspace_id: id,
    workspace_name: "dev",
    template_version_id: version_id,
    workspace_owner_id: me.id,
    workspace_owner_name: me.username,
    initiator_id: me.id,
    initiator_name: me.username,
  });
  const version = await admin.get<{ name: string; job: { file_id: string } }>(`/api/v2/templateversions/${version_id}`);
  expect(build.template_version_name).toBe(version.name);
  expect(build.job).toMatchObject({ file_id: version.job.file_id, input: { workspace_build_id: build.id } });
  const times = [build.job.created_at, build.job.started_at, build.job.completed_at].map((time) =>
    Date.parse(time ?? ""),
  );
  expect(times).toEqual([...times].sort((a, b) => a - b));
  expect(times.every(Number.isFinite)).toBe(true);
  const { audit_logs } = await admin.get<{ audit_logs: AuditLog[] }>(
    "/api/v2/audit?limit=5&q=resource_type:workspace_build",
  );
  expect(audit_logs[0]).toMatchObject({ resource_id: build.id, organization: { id: workspace.organization_id } });
});

test("[WK-30] a build and its workspace show their owner's image, if there is one", async () => {
  await using world = await openWorld();
  const { admin } = world;
  const { template_id } = await seedTemplate(world.server);
  const { id } = await createWorkspace(admin, template_id);
  const { latest_build } = await awaitBuild(admin, id);
  expect(latest_build.workspace_owner_avatar_url).toBeUndefined();
  // No API call sets an image: it comes with external accounts.
  const avatar_url = "https://pictures.example/ada.png";
  const { store } = getContext(world.server);
  await store.commit([updateBy(users, users.id)(latest_build.workspace_owner_id, { avatar_url })]);
  const build = await admin.get<Build>(`/api/v2/workspacebuilds/${latest_build.id}`);
  expect(build.workspace_owner_avatar_url).toBe(avatar_url);
  expect((await admin.get<Workspace>(`/api/v2/workspaces/${id}`)).owner_avatar_url).toBe(avatar_url);
});

test("[AU-7] an audit log entry has the icon of its resource", async () => {
  await using world = await openWorld();
  const { template_id } = await seedTemplate(world.server);
  const icon = "/emojis/1f310.png";
  await world.admin.patch(`/api/v2/templates/${template_id}`, { icon });
  await world.admin.patch(`/api/v2/templates/${template_id}`, { description: "with an icon" });
  const { audit_logs } = await world.admin.get<{ audit_logs: AuditLog[] }>(
    `/api/v2/audit?limit=5&q=resource_id:${template_id}`,
  );
  expect(audit_logs[0]).toMatchObject({ resource_icon: icon, diff: { description: { new: "with an icon" } } });
});
