// Streams that depend on events from all nodes, when a node may have missed one: followers end up with the current state.
import { expect } from "bun:test";
import { updateBy } from "#db/engine/sql.ts";
import { workspaces } from "#db/schema/workspaces.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import type { WorkspacesEvent } from "#schema/workspaces/workspace-watch.ts";
import type { ClientSocket } from "#src/client.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { getContext } from "#test/support/seed.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { awaitBuild, createWorkspace, ECHO, openWorld } from "#test/support/workspaces.ts";

const updateWorkspace = updateBy(workspaces, workspaces.id);

testInProcess(
  "[CP-22] workspace followers get the writes that they missed, and no earlier cursor is valid",
  async () => {
    await using world = await openWorld();
    const { admin, server } = world;
    const { store, topics } = getContext(server);
    const template = await makeTemplate(admin, JSON.stringify(ECHO));
    const { id } = await awaitBuild(admin, (await createWorkspace(admin, template.id)).id);
    using allWorkspaces = await admin.socket("/api/v2/workspaces/watch");
    using oneWorkspace = await admin.socket(`/api/v2/workspaces/${id}/watch-ws`);
    /** Returns the stream's next message about workspaces. */
    const nextMessage = async (socket: ClientSocket) => {
      for (;;) {
        const event = await socket.json<WorkspacesEvent>();
        if (event.type === "snapshot" || event.type === "changes") return event;
      }
    };
    const snapshot = async () => {
      for (;;) {
        const event = await nextMessage(allWorkspaces);
        if (event.type === "snapshot") return event;
      }
    };
    const waitForName = async (name: string) => {
      for (;;) {
        const { type, data } = await oneWorkspace.json<{ type: string; data: Workspace }>();
        if (type === "data" && data.name === name) return;
      }
    };
    const first = await snapshot();
    await waitForName("dev");

    // Simulates a change by another node whose event is lost.
    await store.commit([updateWorkspace(id, { name: "renamed" })]);
    topics.publish("missed", "", {});
    const newSnapshot = await snapshot();
    expect(newSnapshot.workspaces.map(({ name }) => name)).toEqual(["renamed"]);
    await waitForName("renamed");
    using resumed = await admin.socket(`/api/v2/workspaces/watch?after_id=${first.id}`);
    expect((await nextMessage(resumed)).type).toBe("snapshot");
  },
);

testInProcess("[CP-22] the server asks a watcher of chats to reload the list", async () => {
  await using world = await openWorld();
  const { admin, server } = world;
  const { topics } = getContext(server);
  using watch = await admin.socket("/api/v2/chats/watch");
  topics.publish("missed", "", {});
  expect((await watch.closed).code).toBe(1001);
});
