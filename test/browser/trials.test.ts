// Several ways of a prompt, in a real browser.
import { expect } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Chat } from "#schema/chats/chat.ts";
import { createChat } from "#test/support/chats.ts";
import { addWritingModel, startWritingModel } from "#test/support/models/writing-model.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { requireSingleServer } from "#test/support/one-server.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";
import { awaitBuild, createWorkspace, openWorld } from "#test/support/workspaces.ts";
import { listPageErrors, runStory } from "./story.ts";

const LOCAL = "provisioner: local\nresources: [{name: a, agents: [{name: main}]}]\n";

testNeeding(
  [needs.chromium, needs.node, requireSingleServer("local")],
  "[TY-10] a chat's page tries three variants of a prompt, shows them live with their checks and diffs, and keeps the second",
  async () => {
    await using models = await startWritingModel();
    await using world = await openWorld();
    const { admin, server } = world;
    await addWritingModel(admin, models);
    const { id, organization_id } = await createWorkspace(admin, (await makeTemplate(admin, LOCAL)).id);
    await awaitBuild(admin, id);
    const answer = join(server.directory, "workspaces", id, "home", "answer");
    writeFileSync(answer, "none\n");
    const chat = await createChat({ owner: admin, organization_id }, "hello", { workspace_id: id });
    await until(async () => (await admin.get<Chat>(`/api/v2/chats/${chat.id}`)).status === "waiting");
    const result = await runStory("trials.mjs", [server.url.href, admin.token ?? "", chat.id]);
    expect(result).toMatchObject({ problems: [], diff: expect.stringContaining("two") });
    expect(result.second).toContain("1 file +1 −1");
    expect(result.asks).toContain("A snapshot of the current files is created first.");
    expect(readFileSync(answer, "utf8")).toBe("two\n");
    expect(listPageErrors(result)).toEqual([]);
  },
);
