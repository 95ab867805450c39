// Following the template's active version: the setting, and whether an automatic start could work.
import { expect, test } from "bun:test";
import { uuid } from "#base/ids.ts";
import { updateTemplate } from "#db/templates/templates.ts";
import type { Manifest } from "#schema/templates/manifest.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { getContext } from "#test/support/seed.ts";
import type { TestServer } from "#test/support/server.ts";
import { awaitBuild, createBuild, ECHO, seedTemplate } from "#test/support/workspaces.ts";
import { openSharedWorkspace } from "./shared-workspace.ts";

/** Creates a version with this manifest and promotes it. */
const activate = async (server: TestServer, template_id: string, manifest: Manifest): Promise<string> => {
  const { store, clock } = getContext(server);
  const other = await seedTemplate(server, manifest, { name: `t-${uuid().slice(0, 8)}` });
  const move = {
    sql: "update template_versions set template_id = ?, name = id where id = ?",
    rows: [[template_id, other.version_id]],
  };
  const patch = { active_version_id: other.version_id, updated_at: clock.now() + 1 };
  await store.commit([move, updateTemplate(template_id, patch)]);
  return other.version_id;
};

test("[WC-2] automatic_updates is always or never; with always the next start uses the active version", async () => {
  await using shared = await openSharedWorkspace();
  const { clients, path, id, server, template_id, version_id } = shared;
  const putAutoupdates = async (body: unknown) => {
    const answer = await clients.owner.fetch("PUT", `${path}/autoupdates`, body);
    const { validations = [] } =
      answer.status === 204 ? {} : ((await answer.json()) as { validations?: { field: string }[] });
    return [answer.status, ...validations.map(({ field }) => field)];
  };
  for (const automatic_updates of ["weekly", "", 1, undefined]) {
    expect(await putAutoupdates({ automatic_updates })).toEqual([400, "automatic_updates"]);
  }
  const active = await activate(server, template_id, ECHO);
  await createBuild(clients.owner, id, "start");
  expect((await awaitBuild(clients.owner, id)).latest_build.template_version_id).toBe(version_id);
  expect(await putAutoupdates({ automatic_updates: "always" })).toEqual([204]);
  expect(await putAutoupdates({ automatic_updates: "always" })).toEqual([204]);
  expect((await clients.owner.get<Workspace>(path)).automatic_updates).toBe("always");
  await createBuild(clients.owner, id, "start");
  const { latest_build, outdated } = await awaitBuild(clients.owner, id);
  expect([latest_build.template_version_id, outdated]).toEqual([active, false]);
  expect(await putAutoupdates({ automatic_updates: "never" })).toEqual([204]);
  expect((await clients.owner.get<Workspace>(path)).automatic_updates).toBe("never");
});

test("[WC-3] the parameters mismatch only if the next start uses another version with a parameter that has no value", async () => {
  const size = { name: "size", mutable: true, default: "small" };
  await using shared = await openSharedWorkspace({ manifest: { ...ECHO, parameters: [size] } });
  const { clients, path, server, template_id } = shared;
  const mismatch = async (): Promise<unknown> => clients.owner.get(`${path}/resolve-autostart`);
  const [yes, no] = [{ parameter_mismatch: true }, { parameter_mismatch: false }];
  expect(await mismatch()).toEqual(no);
  await activate(server, template_id, { ...ECHO, parameters: [size, { name: "region", mutable: true }] });
  expect(await mismatch()).toEqual(no);
  await clients.owner.put(`${path}/autoupdates`, { automatic_updates: "always" });
  expect(await mismatch()).toEqual(yes);
  await clients.owner.put(`${path}/autoupdates`, { automatic_updates: "never" });
  await clients["site owner"].patch(`/api/v2/templates/${template_id}`, { require_active_version: true });
  expect(await mismatch()).toEqual(yes);
  // A value of the last build that the new version no longer accepts.
  const options = [{ name: "Large", value: "large" }];
  await activate(server, template_id, { ...ECHO, parameters: [{ ...size, default: "large", options }] });
  expect(await mismatch()).toEqual(yes);
  const region = { name: "region", mutable: true, default: "north" };
  await activate(server, template_id, { ...ECHO, parameters: [size, region] });
  expect(await mismatch()).toEqual(no);
});
