// Web search by providers, over a real socket: the tool in requests, and results that are shown, stored and sent back.
import { expect, test } from "bun:test";
import type { MessagePage } from "#schema/chats/chat.ts";
import type { ProviderKind } from "#schema/chats/model-provider.ts";
import { createChat, Follower, sendMessage } from "#test/support/chats.ts";
import { addModel, openModelWorld } from "#test/support/models/model-world.ts";

/** For each provider: the tool in its request, and the part of a search that the next request must contain. */
const KINDS: readonly (readonly [ProviderKind, tool: object, sentBack: string])[] = [
  [
    "anthropic",
    { type: "web_search_20250305", name: "web_search", allowed_domains: ["example.com"] },
    '"encrypted_content":"sealed-page"',
  ],
  ["openai", { type: "web_search", filters: { allowed_domains: ["example.com"] } }, "It is Tea."],
  ["google", { googleSearch: {} }, "It is Tea."],
];
const MODEL_NAMES: Partial<Record<ProviderKind, string>> = {
  anthropic: "claude",
  openai: "gpt",
  google: "gemini-3-pro",
};
const search = { id: "search_1", query: "tea", url: "https://example.com/tea", title: "Tea" };

test("[MO-36] [MO-37] providers search the web if allowed; results are shown, stored, and sent back only to the same provider", async () => {
  await using world = await openModelWorld();
  const { model: otherModel } = await addModel(world, "openai-compat", { model: "other" });
  for (const [kind, tool, sentBack] of KINDS) {
    const provider_options = { web_search_enabled: true, allowed_domains: ["example.com"] };
    await addModel(world, kind, { model: MODEL_NAMES[kind], model_config: { provider_options } });
    const chat = await createChat(world, "what is tea?");
    using follower = await Follower.open(world.owner, chat.id);
    const call = await world.upstream.next();
    expect(call.body.tools).toEqual(expect.arrayContaining([expect.objectContaining(tool)]));
    expect(JSON.stringify(call.body)).not.toMatch(/web_search_enabled|webSearchEnabled/);
    call.say({ search }, { text: "It is Tea." }, { finish: "stop" }).end();
    await follower.until(({ status, history }) => status === "waiting" && history.length === 2);

    const { messages } = await world.owner.get<MessagePage>(`/api/v2/chats/${chat.id}/messages`);
    const parts = messages[0]?.content ?? [];
    const types = parts.map(({ type }) => type);
    expect(parts).toContainEqual(expect.objectContaining({ type: "text", text: "It is Tea." }));
    if (kind !== "openai") expect(parts).toContainEqual(expect.objectContaining({ type: "source", url: search.url }));
    if (kind !== "google") {
      expect(types.filter((type) => type === "tool-call" || type === "tool-result")).toEqual([
        "tool-call",
        "tool-result",
      ]);
      const toolParts = parts.filter(({ tool_name }) => tool_name !== undefined);
      expect(toolParts).toMatchObject([
        { tool_name: "web_search", provider_executed: true },
        { tool_name: "web_search", provider_executed: true, is_error: false },
      ]);
      expect(JSON.stringify(toolParts[1]?.result)).toContain(search.url);
    }
    expect(JSON.stringify([messages, follower.events])).not.toMatch(/sealed-page|provider_metadata/);

    await sendMessage(world, chat.id, "and coffee?");
    const secondCall = await world.upstream.next();
    expect(JSON.stringify(secondCall.body)).toContain(sentBack);
    secondCall.say({ text: "A bean." }, { finish: "stop" }).end();
    await follower.until(({ status, history }) => status === "waiting" && history.length === 4);
    await sendMessage(world, chat.id, "and now you", { model_config_id: otherModel.id });
    const otherModelCall = await world.upstream.next();
    expect(JSON.stringify(otherModelCall.body)).toContain("It is Tea.");
    expect(JSON.stringify(otherModelCall.body)).not.toMatch(/sealed-page|web_search|search_1/);
    otherModelCall.say({ text: "Well." }, { finish: "stop" }).end();
    await follower.until(({ status, history }) => status === "waiting" && history.length === 6);

    await world.owner.patch(`/api/v2/chats/${chat.id}`, { plan_mode: "plan" });
    await sendMessage(world, chat.id, "plan it", { model_config_id: chat.last_model_config_id });
    const planningCall = await world.upstream.next();
    expect(JSON.stringify(planningCall.body.tools ?? [])).not.toMatch(/web_search|googleSearch/);
    planningCall.answer(400, { error: { message: "that will do" } });
  }
});
