// A chat that starts a sub-chat and, in plan mode, asks its user a question; over the public API and a model server.
import { expect, test } from "bun:test";
import type { Chat } from "#schema/chats/chat.ts";
import { createChat, Follower, sendMessage } from "#test/support/chats.ts";
import type { ModelCall } from "#test/support/models/model-server.ts";
import { addModel, type ModelWorld, openModelWorld } from "#test/support/models/model-world.ts";

type Body = { messages: { role: string; content: unknown }[]; tools?: { function: { name: string } }[] };
const getBody = ({ body }: ModelCall) => body as unknown as Body;
const listToolNames = (call: ModelCall) => (getBody(call).tools ?? []).map((tool) => tool.function.name);
const getLastMessage = (call: ModelCall) => JSON.stringify(getBody(call).messages.at(-1));
const callTool = (call: ModelCall, name: string, args: unknown): void =>
  call.say({ call: { id: `id-${name}`, name, args: JSON.stringify(args) } }, { finish: "tool_calls" }).end();
const answer = (call: ModelCall, text: string): void => call.say({ text }, { finish: "stop" }).end();

test("[SB-1] [SB-4] [PM-4] a chat starts a sub-chat and gets its report; a question ends the turn, and a message answers it", async () => {
  await using world = await openModelWorld();
  await expectDemoSubAgent(world);
  const { model } = await addModel(world, "openai-compat", { model_config: { reasoning: { max: "low" } } });
  const { owner, upstream } = world;
  const { id } = await createChat(world, "find it");
  using follower = await Follower.open(owner, id);
  callTool(await upstream.next(), "list_subagent_models", {});
  const listingCall = await upstream.next();
  expect(JSON.parse(String(getBody(listingCall).messages.at(-1)?.content))).toMatchObject({
    models: [{ model_config_id: model.id, model: "test-model", reasoning_efforts: ["none", "minimal", "low"] }],
  });
  callTool(listingCall, "spawn_agent", { type: "explore", prompt: "look for it", model_config_id: model.id });
  // The sub-agent and its parent chat make calls at the same time.
  const calls = [await upstream.next(), await upstream.next()];
  const agent = calls.find((call) => getBody(call).messages.at(-1)?.role === "user");
  const root = calls.find((call) => call !== agent);
  if (!agent || !root) throw new Error("the sub-agent and its parent chat must both call the model");
  const { chat_id } = JSON.parse(String(getBody(root).messages.at(-1)?.content)) as { chat_id: string };
  expect(listToolNames(agent).filter((name) => name.endsWith("_agent"))).toEqual([]);
  const { children } = await owner.get<Chat>(`/api/v2/chats/${id}`);
  expect(children).toMatchObject([{ id: chat_id, parent_chat_id: id, status: "running", title: "look for it" }]);
  using childFollower = await Follower.open(owner, chat_id);
  callTool(root, "wait_agent", { chat_id });
  agent.say({ text: "It is " });
  await childFollower.until(({ preview }) => preview === "It is ");
  answer(agent, "here.");
  const continued = await upstream.next();
  expect(getLastMessage(continued)).toContain("It is here.");
  await childFollower.until(({ status, history }) => status === "waiting" && history.length === 2);
  answer(continued, "Found.");
  await follower.until(({ status, history }) => status === "waiting" && history.at(-1) === "assistant: Found.");

  await sendMessage(world, id, "now plan", { plan_mode: "plan" });
  const planning = await upstream.next();
  expect(listToolNames(planning)).toContain("ask_user_question");
  const options = [
    { label: "Left", description: "Shorter." },
    { label: "Right", description: "Safer." },
  ];
  callTool(planning, "ask_user_question", { questions: [{ header: "Way", question: "Which way?", options }] });
  await follower.until(
    ({ status, messages }) => status === "waiting" && [...messages.values()].at(-1)?.role === "tool",
  );
  await sendMessage(world, id, "Left");
  const afterChoice = await upstream.next();
  expect(getLastMessage(afterChoice)).toContain("Left");
  answer(afterChoice, "So be it.");
  await follower.until(({ history }) => history.at(-1) === "assistant: So be it.");
});

/** Expects the demo model, which answers while no model is configured, to start a sub-agent. */
const expectDemoSubAgent = async (world: ModelWorld): Promise<void> => {
  const { id } = await createChat(world, "agent: say: all is well");
  using follower = await Follower.open(world.owner, id);
  await follower.until(({ status }) => status === "waiting");
  expect(follower.history).toEqual([
    ...["user: agent: say: all is well", "assistant: tool-call", "tool: tool-result"],
    ...["assistant: tool-call", "tool: tool-result", "assistant: The agent reports: all is well"],
  ]);
  expect((await world.owner.get<Chat>(`/api/v2/chats/${id}`)).children).toMatchObject([{ title: "say: all is well" }]);
};
