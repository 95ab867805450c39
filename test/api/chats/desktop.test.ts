// The desktop of a chat's workspace over the public API: a real VNC server behind a real daemon, a viewer that speaks RFB, and a model that
// takes screenshots and presses keys.
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Generic } from "#schema/generic.ts";
import type { ClientSocket } from "#src/client.ts";
import { RfbClient } from "#src/daemon/desktop/rfb.ts";
import type { Duplex } from "#src/wire/duplex.ts";
import { createChat } from "#test/support/chats.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { seedUser } from "#test/support/seed.ts";
import { Family, listToolNames } from "#test/tools/family.ts";
import { openChat, openToolWorld, type ToolWorld } from "#test/tools/world.ts";

let world: ToolWorld;
beforeAll(async () => {
  if (needs.xvnc.found) world = await openToolWorld();
});
afterAll(() => world?.[Symbol.asyncDispose]());

const path = (id: string): string => `/api/experimental/chats/${id}/stream/desktop`;

/** Adapts a viewer's socket to the part of Duplex that RfbClient uses. */
const toDuplex = (socket: ClientSocket): Duplex =>
  ({
    read: async () => {
      const message = await socket.next();
      if (typeof message === "string") throw new Error("received text instead of bytes");
      return message;
    },
    write: async (bytes: Uint8Array<ArrayBuffer>) => socket.send(bytes),
    reset: () => socket.close(),
  }) as unknown as Duplex;

testNeeding(
  [needs.xvnc],
  "[DT-5] a desktop sub-chat gets a screenshot after each action, as a file; no other chat has the tool",
  async () => {
    const family = new Family(world, "use the screen");
    const root = await family.root({ workspace_id: world.seeded.workspace_id });
    expect(listToolNames(root.call)).not.toContain("computer");
    const agent = await family.spawn(root.call, "look at the screen", { type: "computer_use" });
    expect(agent.result).toMatchObject({ type: "computer_use" });
    expect(listToolNames(agent.call)).toEqual(expect.arrayContaining(["computer", "execute"]));
    expect(listToolNames(agent.call)).not.toContain("spawn_agent");
    agent.call.callTool("one", "computer", { action: "screenshot" });
    agent.call.callTool("two", "computer", { action: "key", keys: "no+such+key" }).finish("tool_calls");
    const nextCall = await family.call("look at the screen");
    const [screenshot, invalid] = nextCall.request.messages.flatMap(({ role, content }) =>
      role === "tool" ? content : [],
    );
    expect(screenshot).toMatchObject({ is_error: false, is_media: true, result: { action: "screenshot" } });
    expect(invalid).toMatchObject({ is_error: true, result: { error: expect.stringContaining("names no keys") } });
    expect(invalid?.is_media).toBeUndefined();
    const { image } = (screenshot?.result ?? {}) as { image: { file_id: string; width: number } };
    expect(image).toMatchObject({ media_type: "image/png", width: 1_280, height: 800 });
    const file = await world.owner.fetch("GET", `/api/v2/chats/files/${image.file_id}`);
    expect(file.headers.get("content-type")).toBe("image/png");
    const bytes = Buffer.from(await file.arrayBuffer());
    expect(bytes.subarray(1, 4).toString()).toBe("PNG");
    expect((await family.read(agent.id)).files.map(({ id }) => id)).toEqual([image.file_id]);
    // Programs that the agent starts appear on the desktop.
    nextCall.callTool("three", "execute", { command: "echo $DISPLAY" }).finish("tool_calls");
    const lastCall = await family.call("look at the screen");
    const toolResult = lastCall.request.messages
      .flatMap(({ role, content }) => (role === "tool" ? content : []))
      .at(-1);
    expect(toolResult?.result).toMatchObject({ output: expect.stringMatching(/^:\d+\n$/) });
    lastCall.finish();
    agent.next.finish();
  },
);

testNeeding(
  [needs.xvnc],
  "[DT-2] several viewers share the workspace's desktop until the agent disconnects; users with read access get 403",
  async () => {
    const { id, call } = await openChat(world);
    call.finish();
    using socket = await world.owner.socket(path(id));
    const viewer = await RfbClient.open(toDuplex(socket));
    const screen = await viewer.captureScreen();
    expect([screen.width, screen.height, screen.pixels.length]).toEqual([1_280, 800, 1_280 * 800 * 4]);
    using secondSocket = await world.owner.socket(path(id));
    const secondViewer = await RfbClient.open(toDuplex(secondSocket));
    await secondViewer.movePointer(5, 5, 1);
    expect((await secondViewer.captureScreen()).width).toBe(1_280);
    const friend = await seedUser(world.server, { organization_id: world.organization_id });
    const friendClient = world.owner.withToken(friend.token);
    expect((await friendClient.fetch("GET", path(id))).status).toBe(404);
    await world.owner.patch(`/api/v2/chats/${id}/acl`, { user_roles: { [friend.user_id]: "read" } });
    expect((await friendClient.fetch("GET", path(id))).status).toBe(403);
    const withoutWorkspace = await createChat(world, "no workspace");
    (await world.models.next()).finish();
    const refused = await world.owner.fetch("GET", path(withoutWorkspace.id));
    expect([refused.status, ((await refused.json()) as Generic).message]).toEqual([400, "The chat has no workspace."]);
    // The stream is available only under its experimental path.
    expect((await world.owner.fetch("GET", path(id).replace("experimental", "v2"))).status).toBe(404);
    await world.daemon[Symbol.asyncDispose]();
    expect(await socket.closed).toMatchObject({ code: 1011 });
  },
);

test("[DT-2] returns 409 with the reason if the workspace has no VNC server", async () => {
  await using worldWithoutVnc = await openToolWorld({ agentEnv: { SLIPWAY_DESKTOP_VNC: "/no/such/socket" } });
  const { id, call } = await openChat(worldWithoutVnc);
  call.finish();
  const refused = await worldWithoutVnc.owner.fetch("GET", path(id));
  const { message, detail } = (await refused.json()) as Generic;
  expect({ status: refused.status, text: `${message} ${detail}` }).toEqual({
    status: 409,
    text: expect.stringContaining("Its VNC server cannot be reached"),
  });
});
