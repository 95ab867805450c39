// Titles and summaries of chats: when they are requested, which parts of the answers are used, and that they never replace a user's title.
import { expect, test } from "bun:test";
import {
  formatTranscript,
  parseLabel,
  parseTitle,
  summaryFrom,
  toFallbackTitle,
} from "#actors/chat/background/title-text.ts";
import type { Chat } from "#schema/chats/chat.ts";
import type { WatchEvent } from "#schema/chats/chat-event.ts";
import { type ChatWorld, createChat, Follower, openChatWorld, sendMessage } from "#test/support/chats.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { type ScriptedCall, ScriptedModels } from "#test/support/models/scripted-models.ts";
import { createCallWaiter } from "#test/support/models/side-calls.ts";
import { getContext } from "#test/support/seed.ts";

const PROMPT =
  "please find out why the nightly deployment of the api keeps failing since last week, and fix it for good";

const openWorld = async (options: { clock?: ManualClock } = {}) => {
  const models = new ScriptedModels(true);
  const world = await openChatWorld({ models, env: { SLIPWAY_CHAT_TITLES: "true" }, ...options });
  return {
    ...world,
    models,
    nextCall: createCallWaiter(models),
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  };
};
type TitleWorld = Awaited<ReturnType<typeof openWorld>>;
const getChat = (world: ChatWorld, id: string) => world.owner.get<Chat>(`/api/v2/chats/${id}`);
/** Answers the calls of a turn and the calls for its label and summary. */
const completeTurn = async (
  world: TitleWorld,
  id: string,
  answers: { turn: string; label: string; summary?: string },
) => {
  (await world.nextCall("turn")).say(answers.turn).finish();
  (await world.nextCall("label")).say(answers.label).finish();
  if (answers.summary !== undefined) (await world.nextCall("summary")).say(answers.summary).finish();
  await getContext(world.server).titles.whenIdle();
  return getChat(world, id);
};

test("[TT-1] a chat gets its title during its first turn, then a label and a summary; watchers are notified", async () => {
  await using world = await openWorld();
  using watch = await world.owner.socket("/api/v2/chats/watch");
  const created = await createChat(world, PROMPT);
  expect(created.title).toBe("please find out why the nightly…");
  const turn = await world.nextCall("turn");
  const eventKinds: string[] = [];
  const awaitEvent = async (kind: string) => {
    while (!eventKinds.includes(kind)) eventKinds.push((await watch.json<WatchEvent>()).kind);
  };
  const answer = async (kind: "title" | "label" | "summary", text: string) => {
    const call = await world.nextCall(kind);
    expect(call.prompt).toContain("nightly deployment");
    call.say(text).finish();
  };
  await answer("title", ' "Nightly  deployment failure" ');
  await awaitEvent("title_change");
  expect(await getChat(world, created.id)).toMatchObject({ title: "Nightly deployment failure", status: "running" });

  turn.say("It is the certificate: it ran out on Monday. I have renewed it, and now a job looks every day.").finish();
  await answer("label", "renewed the certificate");
  await answer("summary", "The certificate had run out. It was renewed.");
  await getContext(world.server).titles.whenIdle();
  await awaitEvent("chat_summary_change");
  expect(eventKinds.filter((kind) => kind !== "status_change")).toEqual([
    ...["created", "title_change", "summary_change", "chat_summary_change"],
  ]);
  const chat = await getChat(world, created.id);
  expect([chat.title, chat.last_turn_summary, chat.summary]).toEqual([
    ...["Nightly deployment failure", "renewed the certificate", "The certificate had run out. It was renewed."],
  ]);
  const snapshot = await getContext(world.server).chats.ask(created.id, "snapshot", {});
  expect(snapshot.picture.status).toBe("waiting");
});

test("[TT-2] a title never replaces a user's own; labels follow each turn, summaries every third turn", async () => {
  await using world = await openWorld();
  const { id } = await createChat(world, PROMPT);
  const titleCall = await world.nextCall("title");
  await world.owner.patch(`/api/v2/chats/${id}`, { title: "Mine" });
  titleCall.say("Too late").finish();
  const afterFirst = await completeTurn(world, id, {
    turn: "x".repeat(200),
    label: "looked at logs",
    summary: "First.",
  });
  expect([afterFirst.title, afterFirst.last_turn_summary, afterFirst.summary]).toEqual([
    "Mine",
    "looked at logs",
    "First.",
  ]);
  for (const label of ["read the code", "fixed the bug"]) {
    await sendMessage(world, id, "go on");
    expect((await completeTurn(world, id, { turn: "done", label })).last_turn_summary).toBe(label);
  }
  await sendMessage(world, id, "and on");
  const afterFourth = await completeTurn(world, id, {
    turn: "y".repeat(200),
    label: "renamed a file",
    summary: "Fourth.",
  });
  expect(afterFourth.summary).toBe("Fourth.");
});

test("[TT-2] [TT-3] requests a failed or unusable title again at the end of the turn; a failed label becomes a fixed text", async () => {
  await using world = await openWorld();
  const { id, title } = await createChat(world, "short");
  expect(title).toBe("short");
  (await world.nextCall("title")).say("one two three four five six seven eight nine").finish();
  await getContext(world.server).titles.whenIdle();
  (await world.nextCall("turn")).say("fine").finish();
  (await world.nextCall("title")).say("A short one").finish();
  (await world.nextCall("label")).fail("auth");
  await getContext(world.server).titles.whenIdle();
  const chat = await getChat(world, id);
  expect([chat.title, chat.last_turn_summary]).toEqual(["A short one", "finished latest turn"]);
  await sendMessage(world, id, "fail please");
  (await world.nextCall("turn")).fail("auth");
  (await world.nextCall("label")).say("We have failed you.").finish();
  await getContext(world.server).titles.whenIdle();
  expect((await getChat(world, id)).last_turn_summary).toBe("hit an error");
});

test("[TT-6] an interrupted first turn gets a title, and a label for the work so far", async () => {
  await using world = await openWorld();
  const { id } = await createChat(world, PROMPT);
  const interruptTurn = async (label: string, title?: string) => {
    using follower = await Follower.open(world.owner, id);
    (await world.nextCall("turn")).say("The first log names the certificate.");
    await follower.until(({ preview }) => preview.includes("certificate"));
    await world.owner.post<unknown>(`/api/v2/chats/${id}/interrupt`, {});
    await follower.until(({ status }) => status === "waiting");
    if (title !== undefined) (await world.nextCall("title")).say(title).finish();
    const call = await world.nextCall("label");
    expect(call.request.messages[0]?.content[0]?.text).toContain("interrupted before its end");
    expect(call.prompt).toContain("The first log names the certificate.");
    call.say(label).finish();
  };
  (await world.nextCall("title")).fail("auth");
  await getContext(world.server).titles.whenIdle();
  await interruptTurn("read the first log", "Nightly deployment failure");
  await getContext(world.server).titles.whenIdle();
  const chat = await getChat(world, id);
  expect([chat.title, chat.last_turn_summary]).toEqual(["Nightly deployment failure", "read the first log"]);
  await sendMessage(world, id, "go on");
  await interruptTurn("I did. Many things.");
  await getContext(world.server).titles.whenIdle();
  expect((await getChat(world, id)).last_turn_summary).toBe("stopped before the end");
});

test("[TT-6] a first turn that ends with a queued message still gets a title", async () => {
  await using world = await openWorld();
  const { id } = await createChat(world, PROMPT);
  (await world.nextCall("title")).fail("auth");
  await getContext(world.server).titles.whenIdle();
  const turn = await world.nextCall("turn");
  await sendMessage(world, id, "and then this", { busy_behavior: "queue" });
  turn.say("done").finish();
  await world.nextCall("turn");
  (await world.nextCall("title")).say("Nightly deployment failure").finish();
  await getContext(world.server).titles.whenIdle();
  expect((await getChat(world, id)).title).toBe("Nightly deployment failure");
});

test("[TT-4] the owner can request a title suggestion; nothing is stored", async () => {
  const clock = new ManualClock();
  await using world = await openWorld({ clock });
  const { id } = await createChat(world, PROMPT);
  await world.nextCall("turn");
  (await world.nextCall("title")).fail("auth");
  await getContext(world.server).titles.whenIdle();
  const requestProposal = () => world.owner.fetch("POST", `/api/v2/chats/${id}/title/propose`);
  const propose = async (answer: (call: ScriptedCall) => void) => {
    const response = requestProposal();
    answer(await world.nextCall("title"));
    return response;
  };
  const shortTitle = await propose((call) => call.say("Mending the deployment").finish());
  expect(await shortTitle.json()).toEqual({ title: "Mending the deployment" });
  const longTitle = await propose((call) => call.say("one two three four five six seven eight nine").finish());
  expect(await longTitle.json()).toEqual({ title: "please find out why the nightly…" });
  expect((await propose((call) => call.fail("usage_limit"))).status).toBe(409);
  expect((await propose((call) => call.fail("auth"))).status).toBe(400);
  expect((await propose(() => clock.advance(30_001))).status).toBe(504);
  expect((await getChat(world, id)).title).toBe("please find out why the nightly…");
});

test("[TT-4] suggests the first words without a usable model", async () => {
  await using world = await openChatWorld();
  const { id } = await createChat(world, PROMPT);
  expect(await world.owner.post<unknown>(`/api/v2/chats/${id}/title/propose`, {})).toEqual({
    title: "please find out why the nightly…",
  });
});

// biome-ignore format: a table of cases
const ANSWERS: [string, string | undefined][] = [
  ["Title: Foo bar\nAlternative: x", "Foo bar"],
  ["**Title:** Foo bar", "Foo bar"],
  ["```json\n{\"title\": \"Fix the flaky test\"}\n```", "Fix the flaky test"],
  ["```\nFix the bug\n```", "Fix the bug"],
  ['**"Fix the bug"**\n\nThis title says what is wrong.', "Fix the bug"],
  ["<title>Fix the bug</title>", "Fix the bug"],
  ["<think>The user wants a title.</think>\n\nFix the bug", "Fix the bug"],
  ["Here is a concise title:\n\n- Fix the bug", "Fix the bug"],
  ["Here's a thinking process:\n\nFix the bug", "Fix the bug"],
  ["I need to generate a", undefined],
  ["The user wants a title", undefined],
  ["Thinking machines compared", "Thinking machines compared"],
];
test.each(ANSWERS)("[TT-7] the answer %j gives the title %p", (answer, title) => {
  expect(parseTitle(answer)).toBe(title as string);
});

test("[TT-5] uses only the valid part of an answer", () => {
  expect(parseTitle("“Fix  the\n build”")).toBe("Fix the build");
  expect(parseTitle("one two three four five six seven eight")).toBeDefined();
  for (const unusable of ["", ' "" ', "one two three four five six seven eight nine"])
    expect(parseTitle(unusable)).toBeUndefined();
  expect([...(parseTitle("x".repeat(200)) ?? "")].length).toBe(80);
  expect(parseLabel("fixed the tests")).toBe("fixed the tests");
  for (const unusable of [
    "fixed",
    "I fixed it",
    "The agent fixed it",
    "we did it",
    "fixed it all.",
    "fixed it\nand more",
    "a b c d e f",
  ]) {
    expect([unusable, parseLabel(unusable)]).toEqual([unusable, undefined]);
  }
  expect(summaryFrom("  A.\n B. ")).toBe("A. B.");
  expect(summaryFrom(" ")).toBeUndefined();
  expect(toFallbackTitle([{ type: "file", file_id: "x" }])).toBe("New Chat");
  expect(toFallbackTitle([{ type: "text", text: "one two three four five six seven" }])).toBe(
    "one two three four five six…",
  );
  const longMessages = Array.from({ length: 50 }, (_, index) => ({
    role: index % 2 ? "assistant" : "user",
    content: [{ type: "text" as const, text: `${index} ${"y".repeat(3_000)}` }],
  }));
  expect(formatTranscript(longMessages).length).toBeLessThan(6_100);
  expect(formatTranscript(longMessages)).toContain("assistant: 49");
});
