// Less frequent chat actions in a real browser: a real server with one slot, a real local workspace, a model that follows the prompts.
import { expect } from "bun:test";
import type { Chat } from "#schema/chats/chat.ts";
import { openChatServer, STORY_ENV } from "#test/crash/server-story.ts";
import { TalkingModel } from "#test/support/models/talking-model.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { ADMIN } from "#test/support/server.ts";
import { listPageErrors, listStrayRequests, runStory } from "./story.ts";

testNeeding(
  [needs.chromium, needs.node, needs.git],
  "[CB-3][CB-8][CB-9][CB-10][WB-4][WB-6] a person approves a plan, attaches files, sees retries and sub-agents, and names, pins, forks, archives and finds chats",
  async () => {
    await using story = await openChatServer(
      async (_, stack) => `${stack.use(await TalkingModel.start()).server.url}/v1`,
      {
        ...STORY_ENV,
        SLIPWAY_CHAT_SLOTS: "1",
      },
    );
    const { admin } = story.world;
    const [provider] = await admin.get<{ id: string }[]>("/api/v2/chats/providers");
    const secondModel = { provider_id: provider?.id, model: "second", display_name: "Second", context_limit: 100_000 };
    await admin.post("/api/v2/chats/model-configs", { ...secondModel, model_config: { reasoning: { max: "high" } } });
    const args = [story.place.client.url.href, ADMIN.email, ADMIN.password];
    const result = await runStory("chat-more.mjs", args);
    expect(result).toMatchObject({
      problems: [],
      typed: ["Typed in the one", "Typed in the other"],
      needs: expect.stringContaining("waiting for your approval"),
    });
    expect(Number(result.forked)).toBeGreaterThan(3);
    const chats = await admin.get<Chat[]>("/api/v2/chats");
    expect(chats.find(({ title }) => title === "The shelf")).toMatchObject({ last_reasoning_effort: "high" });
    expect(listStrayRequests(result, story.place.client.url.origin)).toEqual([]);
    expect(listPageErrors(result)).toEqual([]);
  },
  scaleTimeout(400_000),
);
