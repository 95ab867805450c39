// Automatic updates to the template's active version: the setting, and parameter mismatches that prevent an autostart.
import { expect, test } from "bun:test";
import { uuid } from "#base/ids.ts";
import { updateTemplate } from "#db/templates/templates.ts";
import type { Manifest } from "#schema/templates/manifest.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { getContext } from "#test/support/seed.ts";
import type { TestServer } from "#test/support/server.ts";
import { awaitBuild, createBuild, ECHO, seedTemplate } from "#test/support/workspaces.ts";
import { openSharedWorkspace } from "./shared-workspace.ts";

/** Creates a version with this manifest, promotes it and returns its ID. */
const promoteVersion = async (server: TestServer, template_id: string, manifest: Manifest): Promise<string> => {
  const { store, clock } = getContext(server);
  const seeded = await seedTemplate(server, manifest, { name: `t-${uuid().slice(0, 8)}` });
  const moveToTemplate = {
    sql: "update template_versions set template_id = ?, name = id where id = ?",
    rows: [[template_id, seeded.version_id]],
  };
  const patch = { active_version_id: seeded.version_id, updated_at: clock.now() + 1 };
  await store.commit([moveToTemplate, updateTemplate(template_id, patch)]);
  return seeded.version_id;
};

test("[WC-2] automatic_updates is always or never; with always, the next start uses the active version", async () => {
  await using shared = await openSharedWorkspace();
  const { clients, path, id, server, template_id, version_id } = shared;
  const putAutoupdates = async (body: unknown) => {
    const response = await clients.owner.fetch("PUT", `${path}/autoupdates`, body);
    const { validations = [] } =
      response.status === 204 ? {} : ((await response.json()) as { validations?: { field: string }[] });
    return [response.status, ...validations.map(({ field }) => field)];
  };
  for (const automatic_updates of ["weekly", "", 1, undefined]) {
    expect(await putAutoupdates({ automatic_updates })).toEqual([400, "automatic_updates"]);
  }
  const activeVersion = await promoteVersion(server, template_id, ECHO);
  await createBuild(clients.owner, id, "start");
  expect((await awaitBuild(clients.owner, id)).latest_build.template_version_id).toBe(version_id);
  expect(await putAutoupdates({ automatic_updates: "always" })).toEqual([204]);
  expect(await putAutoupdates({ automatic_updates: "always" })).toEqual([204]);
  expect((await clients.owner.get<Workspace>(path)).automatic_updates).toBe("always");
  await createBuild(clients.owner, id, "start");
  const { latest_build, outdated } = await awaitBuild(clients.owner, id);
  expect([latest_build.template_version_id, outdated]).toEqual([activeVersion, false]);
  expect(await putAutoupdates({ automatic_updates: "never" })).toEqual([204]);
  expect((await clients.owner.get<Workspace>(path)).automatic_updates).toBe("never");
});

test("[WC-3] parameter_mismatch is true only if the next start uses another version with a parameter that has no value", async () => {
  const size = { name: "size", mutable: true, default: "small" };
  await using shared = await openSharedWorkspace({ manifest: { ...ECHO, parameters: [size] } });
  const { clients, path, server, template_id } = shared;
  const loadMismatch = async (): Promise<unknown> => clients.owner.get(`${path}/resolve-autostart`);
  const [mismatch, noMismatch] = [{ parameter_mismatch: true }, { parameter_mismatch: false }];
  expect(await loadMismatch()).toEqual(noMismatch);
  await promoteVersion(server, template_id, { ...ECHO, parameters: [size, { name: "region", mutable: true }] });
  expect(await loadMismatch()).toEqual(noMismatch);
  await clients.owner.put(`${path}/autoupdates`, { automatic_updates: "always" });
  expect(await loadMismatch()).toEqual(mismatch);
  await clients.owner.put(`${path}/autoupdates`, { automatic_updates: "never" });
  await clients["site owner"].patch(`/api/v2/templates/${template_id}`, { require_active_version: true });
  expect(await loadMismatch()).toEqual(mismatch);
  // The new version does not accept the value of the last build.
  const options = [{ name: "Large", value: "large" }];
  await promoteVersion(server, template_id, { ...ECHO, parameters: [{ ...size, default: "large", options }] });
  expect(await loadMismatch()).toEqual(mismatch);
  const region = { name: "region", mutable: true, default: "north" };
  await promoteVersion(server, template_id, { ...ECHO, parameters: [size, region] });
  expect(await loadMismatch()).toEqual(noMismatch);
});
