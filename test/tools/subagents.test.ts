// Sub-chats that a chat starts: their results and live output, and their state when their root is stopped, archived, deleted or resumed
// after a crash.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { ChatSubagents } from "#actors/chat/subagents/subagents.ts";
import { upsertChatSetting, upsertModelOverride } from "#db/chats/settings.ts";
import { Client } from "#src/client.ts";
import { type ChatWorld, createChat, Follower, loadHistory, openChatWorld } from "#test/support/chats.ts";
import { describeInProcess, testInProcess } from "#test/support/in-process.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { SCRIPTED } from "#test/support/models/scripted-models.ts";
import { getContext } from "#test/support/seed.ts";
import { tempDirectory } from "#test/support/server.ts";
import { Family, getSystemPrompt, listToolNames } from "./family.ts";
import { joinOutput } from "./world.ts";

const AGENT_TOOLS = ["spawn_agent", "wait_agent", "message_agent", "interrupt_agent", "list_agents"];
const isWaiting = ({ status }: Follower): boolean => status === "waiting";

describeInProcess("one server with a manual clock", () => {
  const clock = new ManualClock();
  let world: ChatWorld;
  beforeAll(async () => {
    world = await openChatWorld({ clock });
  });
  afterAll(() => world[Symbol.asyncDispose]());

  test("[SB-1] [SB-2] [SB-4] [SB-5] a chat starts two agents that know only their task, and gets one's live output and report", async () => {
    const family = new Family(world, "proud");
    const permissions = { default: "allow", rules: [{ tool: "execute", action: "ask" }] };
    const { id, call } = await family.root({ labels: { team: "a" }, permissions });
    expect(listToolNames(call)).toEqual(expect.arrayContaining(AGENT_TOOLS));
    const spawned = await family.step(
      call,
      ["spawn_agent", { type: "general", prompt: "count the files", title: " The  counter\n" }],
      ["spawn_agent", { type: "explore", prompt: "look around you and say what there is" }],
    );
    const [counter, explorer] = spawned.results.map(({ chat_id }) => String(chat_id));
    expect(spawned.results).toMatchObject([
      { title: "The counter", status: "running", type: "general" },
      { title: "look around you and say what…", status: "running", type: "explore" },
    ]);
    const first = await family.call("count the files");
    expect(first.request.messages.filter(({ role }) => role !== "system")).toHaveLength(1);
    expect(getSystemPrompt(first)).toContain("another chat has started for one task");
    expect(listToolNames(first).filter((name) => AGENT_TOOLS.includes(name))).toEqual([]);
    const second = await family.call("look around you and say what there is");
    expect(getSystemPrompt(second)).toContain("change nothing");

    using follower = await Follower.open(world.owner, id);
    using counterFollower = await Follower.open(world.owner, String(counter));
    family.startCalls(spawned.next, ["wait_agent", { chat_id: counter }]);
    first.say("I look", " first").callTool("deeper", "spawn_agent", { type: "general", prompt: "deeper" });
    await follower.until((events) => joinOutput(events) === "I look first");
    first.finish("tool_calls");
    const third = await family.call("count the files");
    expect(third.request.messages.at(-1)?.content).toMatchObject([
      { is_error: true, result: { error: expect.stringContaining('no tool "spawn_agent"') } },
    ]);
    third.say("There are", " three.").finish();
    const waited = await family.nextResults();
    expect(waited.results).toEqual([
      { chat_id: counter, title: "The counter", status: "waiting", report: "There are three." },
    ]);
    await follower.until((events) => joinOutput(events).endsWith("three."));
    const liveParts = follower.events.flatMap((event) =>
      event.type === "message_part" ? [event.message_part.part] : [],
    );
    // The text of the next message replaces the text of the previous one.
    expect(liveParts.filter(({ result_reset }) => result_reset)).toHaveLength(1);
    await counterFollower.until(isWaiting);
    expect(counterFollower.history).toEqual([
      "user: count the files",
      "assistant: I look firsttool-call",
      "tool: tool-result",
      "assistant: There are three.",
    ]);
    const { children, labels } = await family.read(id);
    expect(children.map((child) => child.id).sort()).toEqual([String(counter), String(explorer)].sort());
    expect(children.find((child) => child.id === counter)).toMatchObject({
      parent_chat_id: id,
      root_chat_id: id,
      owner_id: world.user_id,
      labels: {},
      children: [],
      permissions,
    });
    expect(labels).toEqual({ team: "a" });
    await world.owner.patch(`/api/v2/chats/${id}`, { permissions: { default: "deny", rules: [] } });
    const childDefaults = (await family.read(id)).children.map((child) => child.permissions?.default);
    expect(childDefaults).toEqual(["deny", "deny"]);
  });

  test("[SB-4] a wait ends with the agent's turn, the agent's failure, or a timeout, which is 300 seconds by default", async () => {
    const family = new Family(world, "patient");
    const root = await family.root();
    const agent = await family.spawn(root.call, "toil");
    const chat_id = agent.id;
    const firstWait = await family.step(agent.next, ["wait_agent", { chat_id, timeout_seconds: 0 }]);
    expect(firstWait.results).toEqual([{ chat_id, title: "toil", status: "running", timed_out: true }]);
    using follower = await Follower.open(world.owner, root.id);
    using agentFollower = await Follower.open(world.owner, chat_id);
    family.startCalls(firstWait.next, ["wait_agent", { chat_id }]);
    agent.call.say("still at it");
    await follower.until((events) => joinOutput(events) === "still at it");
    const { length: callCount } = world.models.calls;
    clock.advance(299_999);
    await agentFollower.until(({ preview }) => preview === "still at it");
    expect(world.models.calls).toHaveLength(callCount);
    clock.advance(1);
    const lateWait = await family.nextResults();
    expect(lateWait.results).toMatchObject([{ timed_out: true, status: "running" }]);
    family.startCalls(lateWait.next, ["wait_agent", { chat_id, timeout_seconds: 14_400 }]);
    agent.call.fail("auth");
    const failed = await family.nextResults();
    expect(failed.results).toMatchObject([
      { status: "error", report: "still at it", last_error: expect.stringContaining("refused the credentials") },
    ]);
    // The agent continues after a message; its report is then its newest text.
    const continued = await family.step(failed.next, ["message_agent", { chat_id, message: "try again" }]);
    expect(continued.results).toEqual([{ chat_id, status: "running", interrupted: false }]);
    family.startCalls(continued.next, ["wait_agent", { chat_id }]);
    const retriedCall = await family.call("toil");
    expect(retriedCall.prompt).toBe("try again");
    retriedCall.say("now it is done").finish();
    expect((await family.nextResults()).results).toMatchObject([{ status: "waiting", report: "now it is done" }]);
  });

  test("[SB-6] a chat messages, stops and lists its agents; other chats' agents, full queues and invalid arguments return errors", async () => {
    const family = new Family(world, "busy");
    const otherChat = await createChat(world, "another chat");
    (await family.call("another chat")).finish();
    const root = await family.root();
    const agent = await family.spawn(root.call, "work");
    const chat_id = agent.id;
    const busy = await family.step(
      agent.next,
      ["message_agent", { chat_id, message: "and then this" }],
      ["message_agent", { chat_id: otherChat.id, message: "hello" }],
      ["wait_agent", { chat_id: root.id }],
      ["interrupt_agent", { chat_id: "missing" }],
      ["spawn_agent", { type: "wizard", prompt: "click" }],
      ["spawn_agent", { type: "general", prompt: "  " }],
      ["spawn_agent", { type: "general", prompt: "x", model_config_id: otherChat.id }],
      ["wait_agent", { chat_id, timeout_seconds: 14_401 }],
      ["list_agents", { limit: 51 }],
      ["list_subagent_models"],
    );
    const unknownAgent = { error: expect.stringContaining("has not started an agent with this chat_id") };
    const invalid = { error: expect.stringContaining("do not fit") };
    expect(busy.results).toMatchObject([
      { chat_id, status: "running", interrupted: false },
      ...[unknownAgent, unknownAgent, unknownAgent, invalid, invalid],
      { error: expect.stringContaining("No usable model has this model_config_id") },
      ...[invalid, invalid],
      { models: [{ model_config_id: SCRIPTED.id, display_name: SCRIPTED.display_name, is_default: true }] },
    ]);
    // After an interrupt by a message, queued messages are sent first.
    const stopped = await family.step(busy.next, ["message_agent", { chat_id, message: "right now", interrupt: true }]);
    expect(stopped.results).toMatchObject([{ interrupted: true }]);
    const nextTask = await family.call("work");
    expect(nextTask.prompt).toBe("and then this");
    const ended = await family.step(stopped.next, ["interrupt_agent", { chat_id }]);
    expect(ended.results).toMatchObject([{ chat_id, interrupted: true }]);
    const last = await family.call("work");
    expect(last.prompt).toBe("right now");
    {
      using follower = await Follower.open(world.owner, chat_id);
      last.say("well").finish();
      await follower.until(isWaiting);
    }
    const idle = await family.step(ended.next, ["interrupt_agent", { chat_id }], ["list_agents"]);
    expect(idle.results).toMatchObject([
      { status: "waiting", interrupted: false },
      { count: 1, has_more: false, agents: [{ chat_id, title: "work", type: "general", status: "waiting" }] },
    ]);
    // At most twenty messages can be queued.
    const { next } = await family.step(idle.next, ["message_agent", { chat_id, message: "begin" }]);
    await family.call("work");
    const manyCalls = Array.from(
      { length: 21 },
      (_, index) => ["message_agent", { chat_id, message: `${index}` }] as const,
    );
    const filled = await family.step(next, ...manyCalls);
    const refusedMessages = filled.results.filter(({ error }) => error !== undefined);
    expect(refusedMessages).toMatchObject([{ error: expect.stringContaining("queue is full") }]);
    const secondAgent = await family.spawn(filled.next, "more");
    const page = await family.step(secondAgent.next, ["list_agents", { limit: 1 }], ["list_agents", { offset: 1 }]);
    expect(page.results).toMatchObject([
      { count: 2, has_more: true, agents: [{ title: "more" }] },
      { count: 2, has_more: false, agents: [{ title: "work" }] },
    ]);
  });

  test("[SB-3] [SB-7] stopping a chat stops only the agent it waits for; agents are archived, restored and deleted with their root", async () => {
    const { chats } = getContext(world.server);
    const family = new Family(world, "tired");
    const root = await family.root();
    const awaitedAgent = await family.spawn(root.call, "near");
    const otherAgent = await family.spawn(awaitedAgent.next, "far");
    using follower = await Follower.open(world.owner, root.id);
    using awaitedFollower = await Follower.open(world.owner, awaitedAgent.id);
    family.startCalls(otherAgent.next, ["wait_agent", { chat_id: awaitedAgent.id }]);
    awaitedAgent.call.say("half of it");
    await follower.until((events) => joinOutput(events) === "half of it");
    const interrupt = (id: string) => world.owner.post<unknown>(`/api/v2/chats/${id}/interrupt`, {});
    await interrupt(root.id);
    await follower.until(isWaiting);
    await awaitedFollower.until(isWaiting);
    expect([...follower.messages.values()].at(-1)?.content).toMatchObject([
      { is_error: true, result: { output: "half of it", error: expect.stringContaining("interrupted") } },
    ]);
    expect(awaitedFollower.history).toEqual(["user: near", "assistant: half of it"]);
    expect((await family.read(otherAgent.id)).status).toBe("running");
    const setArchived = (id: string, archived: boolean) =>
      world.owner.fetch("PATCH", `/api/v2/chats/${id}`, { archived });
    expect((await setArchived(root.id, true)).status).toBe(409);
    expect((await setArchived(otherAgent.id, true)).status).toBe(400);
    {
      using otherFollower = await Follower.open(world.owner, otherAgent.id);
      await interrupt(otherAgent.id);
      await otherFollower.until(isWaiting);
    }
    expect((await setArchived(root.id, true)).status).toBe(204);
    // A call whose turn has ended must not start an agent.
    const lateSpawn = {
      id: crypto.randomUUID(),
      call: { message_id: 1, tool_call_id: "call-0" },
      type: "general" as const,
      content: [{ type: "text" as const, text: "late" }],
      title: "late",
      model_config_id: SCRIPTED.id,
      reasoning_effort: "",
    };
    expect(await chats.ask(root.id, "spawn", lateSpawn)).toBe("stale");
    const archived = await family.read(root.id);
    expect(archived.children.map((child) => child.archived)).toEqual([true, true]);
    expect((await setArchived(root.id, false)).status).toBe(204);
    expect((await family.read(root.id)).children.map((child) => child.archived)).toEqual([false, false]);
    // The agents accept messages again; then the whole family is deleted.
    await world.owner.post(`/api/v2/chats/${awaitedAgent.id}/messages`, { content: [{ type: "text", text: "go on" }] });
    (await family.call("near")).say("gone on").finish();
    await awaitedFollower.until(({ history }) => history.at(-1) === "assistant: gone on");
    await awaitedFollower.until(isWaiting);
    expect((await setArchived(root.id, true)).status).toBe(204);
    expect(await chats.ask(root.id, "purge", { before: Number.MAX_SAFE_INTEGER })).toBe("done");
    for (const id of [root.id, awaitedAgent.id, otherAgent.id]) {
      expect((await world.owner.fetch("GET", `/api/v2/chats/${id}`)).status).toBe(404);
    }
  });
});

testInProcess(
  "[SB-7] [SB-8] a restarted server resumes the wait without starting an agent twice; an earlier interrupt stops the agent",
  async () => {
    using directory = tempDirectory();
    let root = "";
    let chat_id = "";
    let owner = "";
    {
      await using world = await openChatWorld({ directory: directory.path });
      const family = new Family(world);
      const started = await family.root();
      root = started.id;
      owner = world.owner.token ?? "";
      const agent = await family.spawn(started.call, "work");
      chat_id = agent.id;
      using follower = await Follower.open(world.owner, root);
      family.startCalls(agent.next, ["wait_agent", { chat_id, timeout_seconds: 3_600 }]);
      agent.call.say("before");
      await follower.until((events) => joinOutput(events) === "before");
    }
    {
      await using world = await openChatWorld({ directory: directory.path });
      const { store, chats, clock, topics, hooks } = getContext(world.server);
      const family = new Family(world);
      const agent = await family.call("work");
      const pendingCalls = await store.get({
        sql: "select pending_calls from chats where id = ?1",
        params: [root],
        map: ([json]) => JSON.parse(String(json)) as { message_id: number; tool_call_id: string }[],
      });
      const [call] = pendingCalls ?? [];
      if (!call) throw new Error("the root waits for nothing");
      // Repeats the calls, as after a crash before their results were stored.
      const makeAgents = (run_id: string) =>
        new ChatSubagents(
          { store, clock, topics, hooks, models: world.models, chats: () => chats },
          { chat_id: root, run_id, call },
        );
      const input = { type: "explore", prompt: "twice" } as const;
      const [firstSpawn, secondSpawn] = [await makeAgents("one").spawn(input), await makeAgents("one").spawn(input)];
      expect(secondSpawn).toEqual(firstSpawn);
      await family.call("twice");
      for (const run_id of ["two", "two"]) await makeAgents(run_id).message(chat_id, "more", false);
      const sql = "select count(*) from queued_messages";
      expect(await store.get({ sql, params: [], map: ([count]) => Number(count) })).toBe(1);
      agent.say("after").finish();
      (await family.call("work")).say("and more").finish();
      const { results, next } = await family.nextResults();
      expect(results).toMatchObject([{ chat_id, status: "waiting", report: "and more" }]);
      const titles = await store.all({
        sql: "select title from chats where parent_chat_id = ?1",
        params: [root],
        map: ([title]) => String(title),
      });
      expect(titles.sort()).toEqual(["twice", "work"]);
      await createChat(world, "first in the queue");
      await family.call("first in the queue");
      const continued = await family.step(next, ["message_agent", { chat_id, message: "again" }]);
      const third = await family.call("work");
      using follower = await Follower.open(new Client(world.server.url, owner), root);
      family.startCalls(continued.next, ["wait_agent", { chat_id }]);
      third.say("once more");
      await follower.until((events) => joinOutput(events).endsWith("once more"));
    }
    // Another chat occupies the only slot, and the interrupted root does not wait for the agent.
    await using world = await openChatWorld({ directory: directory.path, env: { SLIPWAY_CHAT_SLOTS: "1" } });
    const { chats, topics } = getContext(world.server);
    const family = new Family(world);
    await family.call("first in the queue");
    await family.call("work");
    const waitUntilIdle = (id: string) =>
      new Promise<void>((resolve) => topics.subscribe("chat", id, ({ status }) => status === "waiting" && resolve()));
    const bothIdle = Promise.all([waitUntilIdle(root), waitUntilIdle(chat_id)]);
    await chats.ask(root, "interrupt", {});
    await bothIdle;
  },
);

testInProcess(
  "[SB-9] [SB-10] agents have separate slots, use the model that their owner has set, and are limited to a hundred",
  async () => {
    await using world = await openChatWorld({ env: { SLIPWAY_CHAT_SLOTS: "1", SLIPWAY_SUBCHAT_SLOTS: "1" } });
    const { store } = getContext(world.server);
    const scope = { organization_id: world.organization_id, user_id: world.user_id };
    await store.commit([
      upsertChatSetting("allow_model_overrides", true),
      upsertModelOverride(
        { ...scope, context: "explore" },
        { mode: "model", model_config_id: SCRIPTED.id, reasoning_effort: "low" },
      ),
    ]);
    const family = new Family(world);
    const root = await family.root({ reasoning_effort: "high" });
    const first = await family.spawn(root.call, "first", { type: "explore" });
    expect(first.call.request.reasoning_effort).toBe("low");
    const spawnedSecond = await family.step(first.next, ["spawn_agent", { type: "general", prompt: "second" }]);
    const input = { type: "explore", prompt: "third", reasoning_effort: "max" };
    const { results, next } = await family.step(spawnedSecond.next, ["spawn_agent", input]);
    const [second, third] = [...spawnedSecond.results, ...results].map(({ chat_id }) => String(chat_id));
    expect((await family.read(String(second))).queued_for_capacity).toBe(true);
    // While the root waits in the only slot for root chats, the agents take turns in theirs.
    family.startCalls(next, ["wait_agent", { chat_id: second }], ["wait_agent", { chat_id: third }]);
    first.call.say("1").finish();
    const secondCall = await family.call("second");
    expect(secondCall.request.reasoning_effort).toBe("high");
    secondCall.say("2").finish();
    const thirdCall = await family.call("third");
    expect(thirdCall.request.reasoning_effort).toBe("max");
    thirdCall.say("3").finish();
    const waited = await family.nextResults();
    expect(waited.results).toMatchObject([{ report: "2" }, { report: "3" }]);
    const manyCalls = Array.from(
      { length: 98 },
      (_, index) => ["spawn_agent", { type: "explore", prompt: `n${index}` }] as const,
    );
    const filled = await family.step(waited.next, ...manyCalls);
    expect(filled.results.filter(({ error }) => error !== undefined)).toMatchObject([
      { error: expect.stringContaining("100 agents, the maximum") },
    ]);
    expect(await loadHistory(world.owner, root.id)).toHaveLength(1 + 2 + 2 + 2 + 3 + 99);
  },
);
