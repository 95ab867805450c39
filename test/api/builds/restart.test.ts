// Restarting or updating a workspace with one call.
import { expect, test } from "bun:test";
import { uuid } from "#base/ids.ts";
import type { Build } from "#schema/workspaces/build.ts";
import type { Client } from "#src/client.ts";
import { awaitStatus } from "#test/support/net/status.ts";
import { seedUser } from "#test/support/seed.ts";
import { ECHO, followImport, makeTemplate, uniqueText, uploadFiles } from "#test/support/templates.ts";
import { awaitBuild, awaitWorkspace, createWorkspace, openWorld } from "#test/support/workspaces.ts";

const createManifest = (moreParameters: string): string =>
  `${uniqueText()}${ECHO}parameters:\n  - {name: size, default: small, mutable: true}\n${moreParameters}`;

const listTransitions = async (client: Client, id: string) =>
  (await client.get<Build[]>(`/api/v2/workspaces/${id}/builds`)).map(({ transition }) => transition).toReversed();

test("[WK-31] restarts with another version and other values in one call, and only starts a stopped workspace", async () => {
  await using world = await openWorld();
  const { admin } = world;
  const template = await makeTemplate(admin, createManifest(""));
  const { id } = await createWorkspace(admin, template.id, "dev");
  await awaitBuild(admin, id);
  const file_id = await uploadFiles(admin, {
    "template.yaml": createManifest("  - {name: more, default: yes please}\n"),
  });
  const nextVersion = await admin.post<{ id: string }>("/api/v2/organizations/default/templateversions", {
    file_id,
    template_id: template.id,
  });
  await followImport(admin, nextVersion.id);
  const stop = await admin.post<Build>(`/api/v2/workspaces/${id}/restart`, {
    template_version_id: nextVersion.id,
    rich_parameter_values: [{ name: "size", value: "big" }],
    reason: "dashboard",
  });
  expect(stop).toMatchObject({ transition: "stop", build_number: 2, reason: "dashboard" });
  const workspace = await awaitWorkspace(
    admin,
    id,
    ({ latest_build }) => latest_build.build_number === 3 && latest_build.status === "running",
  );
  expect(workspace.latest_build).toMatchObject({
    transition: "start",
    template_version_id: nextVersion.id,
    reason: "dashboard",
  });
  expect(await admin.get<object[]>(`/api/v2/workspacebuilds/${workspace.latest_build.id}/parameters`)).toEqual([
    { name: "more", value: "yes please" },
    { name: "size", value: "big" },
  ]);
  expect(await listTransitions(admin, id)).toEqual(["start", "stop", "start"]);

  await admin.post(`/api/v2/workspaces/${id}/builds`, { transition: "stop" });
  await awaitWorkspace(admin, id, ({ latest_build }) => latest_build.status === "stopped");
  expect(await admin.post<Build>(`/api/v2/workspaces/${id}/restart`, {})).toMatchObject({ transition: "start" });
  await awaitBuild(admin, id);
  expect(await listTransitions(admin, id)).toEqual(["start", "stop", "start", "stop", "start"]);
});

test("[WK-31] rejects an impossible start before the workspace stops", async () => {
  await using world = await openWorld();
  const { admin, server } = world;
  const template = await makeTemplate(admin, createManifest(""));
  const { id } = await createWorkspace(admin, template.id, "dev");
  await awaitBuild(admin, id);
  const restart = (body: object, client = admin) => awaitStatus(client.post(`/api/v2/workspaces/${id}/restart`, body));
  expect(await restart({ rich_parameter_values: [{ name: "colour", value: "red" }] })).toBe(400);
  expect(await restart({ template_version_id: uuid() })).toBe(404);
  expect(await restart({ transition: "stop" })).toBe(400);
  const { token } = await seedUser(server);
  expect(await restart({}, admin.withToken(token))).toBe(404);
  expect(await listTransitions(admin, id)).toEqual(["start"]);
});
