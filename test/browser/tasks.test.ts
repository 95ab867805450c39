// Tasks and secrets in a real browser: a real server, a real local workspace for each task, and a model that talks.
import { expect } from "bun:test";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { openChatServer } from "#test/crash/server-story.ts";
import { TEST_AGENT } from "#test/support/acp/agent-world.ts";
import { TalkingModel } from "#test/support/models/talking-model.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { ADMIN } from "#test/support/server.ts";
import { listPageErrors, listStrayRequests, runStory } from "./story.ts";

testNeeding(
  [needs.chromium, needs.node, needs.git],
  "[WB-67][CB-16][TK-2][TK-6][TK-7][TK-9][WB-4][WB-6] a person stores a secret, and starts, pauses, resumes and deletes a task with the template's default agent; a chat starts with it, too",
  async () => {
    await using story = await openChatServer(
      async (_, stack) => `${stack.use(await TalkingModel.start()).server.url}/v1`,
    );
    const { url } = story.place.client;
    const { admin } = story.world;
    const setAgent = (enabled: boolean) =>
      admin.put<unknown>("/api/v2/ai/agents/test", Object.assign({}, TEST_AGENT, { enabled }));
    await setAgent(true);
    const { template_id } = await admin.get<Workspace>(`/api/v2/workspaces/${story.workspace_id}`);
    const args = [url.href, ADMIN.email, ADMIN.password, template_id, story.workspace_id];
    const result = await runStory("tasks.mjs", args, { off: () => setAgent(false) });
    expect(result).toMatchObject({
      problems: [],
      shown: false,
      agents: ["Default (Test agent)", "Test agent", "coder"],
    });
    expect(result.refused).not.toBe("");
    expect(await admin.get("/api/v2/users/me/secrets")).toMatchObject([{ name: "registry" }]);
    expect(listStrayRequests(result, url.origin)).toEqual([]);
    expect(listPageErrors(result)).toEqual([]);
  },
  scaleTimeout(400_000),
);
