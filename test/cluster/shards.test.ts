// The shard of objects created through the public client, as stored.
import { expect } from "bun:test";
import { toShard } from "#base/shards.ts";
import { findChat } from "#db/chats/chats.ts";
import { findTemplateVersion } from "#db/templates/versions.ts";
import { findWorkspace } from "#db/workspaces/workspaces.ts";
import type { Chat } from "#schema/chats/chat.ts";
import type { Manifest } from "#schema/templates/manifest.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { createChat, Follower, openChatWorld } from "#test/support/chats.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { getContext } from "#test/support/seed.ts";
import { importVersion, makeTemplate } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";
import { createWorkspace, openWorld } from "#test/support/workspaces.ts";

const PREBUILD_MANIFEST: Manifest = {
  provisioner: "echo",
  resources: [{ name: "main" }],
  parameters: [{ name: "size", default: "large" }],
  presets: [{ name: "Small", parameters: { size: "small" }, prebuilds: 1 }],
};

testInProcess(
  "[CP-1] a workspace belongs to its owner's shard, a prebuild to its template's, also once it is claimed",
  async () => {
    await using world = await openWorld();
    const { admin, server } = world;
    const { store, scheduler } = getContext(server);
    const getWorkspaceShard = async (id: string) => (await store.get(findWorkspace({ id })))?.part;
    const template = await makeTemplate(admin, JSON.stringify(PREBUILD_MANIFEST));
    const prebuild = await until(async () => {
      const { workspaces } = await admin.get<{ workspaces: Workspace[] }>("/api/v2/workspaces?q=owner:prebuilds");
      await scheduler.tick();
      return workspaces.find(({ latest_build }) => latest_build.status === "running");
    });
    expect(await getWorkspaceShard(prebuild.id)).toBe(toShard(template.id));
    const ownWorkspace = await createWorkspace(admin, template.id, "own");
    expect(ownWorkspace.id).not.toBe(prebuild.id);
    expect(await getWorkspaceShard(ownWorkspace.id)).toBe(toShard(ownWorkspace.owner_id));
    const presets = await admin.get<{ id: string }[]>(`/api/v2/templateversions/${template.active_version_id}/presets`);
    const claimed = await createWorkspace(admin, template.id, "claimed", {
      template_version_preset_id: presets[0]?.id,
    });
    expect(claimed.id).toBe(prebuild.id);
    expect(await getWorkspaceShard(claimed.id)).toBe(toShard(template.id));
  },
);

testInProcess(
  "[CP-1] a version belongs to its template's shard, or to its own if it is older than the template",
  async () => {
    await using world = await openWorld();
    const { admin, server } = world;
    const { store } = getContext(server);
    const getVersionShard = async (id: string) => (await store.get(findTemplateVersion({ id })))?.part;
    const template = await makeTemplate(admin, JSON.stringify({ ...PREBUILD_MANIFEST, presets: [] }));
    const first = template.active_version_id;
    expect(await getVersionShard(first)).toBe(toShard(first));
    const second = await importVersion(admin, JSON.stringify({ ...PREBUILD_MANIFEST, presets: [] }), {
      template_id: template.id,
    });
    expect(await getVersionShard(second.id)).toBe(toShard(template.id));
  },
);

testInProcess("[CP-1] chats and copies of chats belong to their owner's shard", async () => {
  await using world = await openChatWorld();
  const { store } = getContext(world.server);
  const chat = await createChat(world);
  using follower = await Follower.open(world.owner, chat.id);
  (await world.models.next()).say("hello").finish();
  await follower.until(({ status }) => status === "waiting");
  const copy = await world.owner.post<Chat>(`/api/v2/chats/${chat.id}/fork`, {});
  for (const id of [chat.id, copy.id]) expect((await store.get(findChat({ id })))?.part).toBe(toShard(world.user_id));
});
