// The audit log in a real browser.
import { expect } from "bun:test";
import { systemClock } from "#base/clock.ts";
import type { Chat } from "#schema/chats/chat.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { getContext, seedAgent } from "#test/support/seed.ts";
import { ADMIN } from "#test/support/server.ts";
import { openWorld } from "#test/support/workspaces.ts";
import { runStory } from "./story.ts";

testNeeding(
  [needs.chromium, needs.node],
  "[WB-4] [WB-6] [WB-20] the audit log shows actions by field, names chats and files, and keeps filter and entry in the URL; so does the connection log",
  async () => {
    await using world = await openWorld({ clock: systemClock });
    const { agent_id, owner_id } = await seedAgent(world.server);
    const { connections } = getContext(world.server);
    const connection = { agent_id, user_id: owner_id, user_agent: "Mozilla/5.0 (X11; Linux x86_64) of a browser" };
    connections.begin({ ...connection, ip: "192.0.2.7", type: "workspace_app", target: "code", status_code: 200 });
    connections.begin({ ...connection, ip: "192.0.2.8", type: "reconnecting_pty" })("the command has ended");
    await world.admin.put("/api/v2/users/me/profile", { username: ADMIN.username, name: "Ada Lovelace" });
    const chat = await world.admin.post<Chat>("/api/v2/chats", {
      organization_id: (await world.admin.get<{ id: string }[]>("/api/v2/organizations"))[0]?.id,
      content: [{ type: "text", text: "Hello." }],
    });
    await world.admin.patch(`/api/v2/chats/${chat.id}`, { title: "Repair the crane" });
    const args = [world.server.url.href, world.admin.token ?? ""];
    const result = await runStory<{ fields: string[] }>("audit.mjs", args);
    expect(result).toMatchObject({
      problems: [],
      address: "resource_type:user",
      connections: 1,
      isOpenOnLoad: false,
      isCloseVisible: true,
    });
    expect(result.fields.join("\n")).toContain("Ada Lovelace");
    expect(result.after).toContain("changed user");
  },
  scaleTimeout(240_000),
);
