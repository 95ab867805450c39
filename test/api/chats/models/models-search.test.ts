// Web search by providers: what is offered, shown, stored and sent back, over a real socket.
import { expect, test } from "bun:test";
import type { MessagePage } from "#schema/chats/chat.ts";
import type { ProviderKind } from "#schema/chats/model-provider.ts";
import { createChat, Follower, sendMessage } from "#test/support/chats.ts";
import { addModel, openModelWorld } from "#test/support/models/model-world.ts";

/** For each provider: the tool in its request, and the part of a search that the next request must contain. */
const KINDS: readonly (readonly [ProviderKind, asked: object, again: string])[] = [
  [
    "anthropic",
    { type: "web_search_20250305", name: "web_search", allowed_domains: ["example.com"] },
    '"encrypted_content":"sealed-page"',
  ],
  ["openai", { type: "web_search", filters: { allowed_domains: ["example.com"] } }, "It is Tea."],
  ["google", { googleSearch: {} }, "It is Tea."],
];
const MODELS: Partial<Record<ProviderKind, string>> = { anthropic: "claude", openai: "gpt", google: "gemini-3-pro" };
const search = { id: "search_1", query: "tea", url: "https://example.com/tea", title: "Tea" };

test("[MO-36] [MO-37] a provider searches the web if the model's options allow it; results are shown, stored, and sent back only to that provider", async () => {
  await using world = await openModelWorld();
  const { model: other } = await addModel(world, "openai-compat", { model: "other" });
  for (const [kind, requested, wanted] of KINDS) {
    const provider_options = { web_search_enabled: true, allowed_domains: ["example.com"] };
    await addModel(world, kind, { model: MODELS[kind], model_config: { provider_options } });
    const chat = await createChat(world, "what is tea?");
    using follower = await Follower.open(world.owner, chat.id);
    const call = await world.upstream.next();
    expect(call.body.tools).toEqual(expect.arrayContaining([expect.objectContaining(requested)]));
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
      const tools = parts.filter(({ tool_name }) => tool_name !== undefined);
      expect(tools).toMatchObject([
        { tool_name: "web_search", provider_executed: true },
        { tool_name: "web_search", provider_executed: true, is_error: false },
      ]);
      expect(JSON.stringify(tools[1]?.result)).toContain(search.url);
    }
    expect(JSON.stringify([messages, follower.events])).not.toMatch(/sealed-page|provider_metadata/);

    await sendMessage(world, chat.id, "and coffee?");
    const secondCall = await world.upstream.next();
    expect(JSON.stringify(secondCall.body)).toContain(wanted);
    secondCall.say({ text: "A bean." }, { finish: "stop" }).end();
    await follower.until(({ status, history }) => status === "waiting" && history.length === 4);
    await sendMessage(world, chat.id, "and now you", { model_config_id: other.id });
    const elsewhere = await world.upstream.next();
    expect(JSON.stringify(elsewhere.body)).toContain("It is Tea.");
    expect(JSON.stringify(elsewhere.body)).not.toMatch(/sealed-page|web_search|search_1/);
    elsewhere.say({ text: "Well." }, { finish: "stop" }).end();
    await follower.until(({ status, history }) => status === "waiting" && history.length === 6);

    await world.owner.patch(`/api/v2/chats/${chat.id}`, { plan_mode: "plan" });
    await sendMessage(world, chat.id, "plan it", { model_config_id: chat.last_model_config_id });
    const planning = await world.upstream.next();
    expect(JSON.stringify(planning.body.tools ?? [])).not.toMatch(/web_search|googleSearch/);
    planning.answer(400, { error: { message: "that will do" } });
  }
});
