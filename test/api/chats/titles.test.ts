// Titles and summaries: what is asked when, what of the answers is taken, and that nobody's own title is ever overwritten.
import { expect, setDefaultTimeout, test } from "bun:test";
import { fallbackTitle, labelFrom, summaryFrom, titleFrom, transcriptOf } from "#actors/chat/background/title-text.ts";
import type { Chat } from "#schema/chat.ts";
import type { WatchEvent } from "#schema/chat-event.ts";
import { type ChatWorld, createChat, openChatWorld, sendMessage } from "#test/support/chats.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { type ScriptedCall, ScriptedModels } from "#test/support/scripted-models.ts";
import { contextOf } from "#test/support/seed.ts";

setDefaultTimeout(30_000);

const PROMPT =
  "please find out why the nightly deployment of the api keeps failing since last week, and mend it for good";

const openWorld = async (options: { clock?: ManualClock } = {}) => {
  const models = new ScriptedModels(true);
  const world = await openChatWorld({ models, env: { SLIPWAY_CHAT_TITLES: "true" }, ...options });
  return { ...world, models, [Symbol.asyncDispose]: () => world[Symbol.asyncDispose]() };
};
const asks = (call: ScriptedCall): string => call.request.messages[0]?.content[0]?.text ?? "";
const read = (world: ChatWorld, id: string) => world.owner.get<Chat>(`/api/v2/chats/${id}`);
/** Answers the next calls by what they ask for; the turn itself gets `turn`. */
const answerAll = async (
  world: ChatWorld,
  id: string,
  answers: { turn: string; title?: string; label: string; summary?: string },
) => {
  (await world.models.next()).say(answers.turn).finish();
  const wanted = [answers.title, answers.label, answers.summary].filter((one) => one !== undefined);
  for (const answer of wanted) (await world.models.next()).say(answer).finish();
  await contextOf(world.server).titles.idle();
  return read(world, id);
};

test("[TT-1] after its first exchange a chat gets a title, a label and a summary; watchers hear of it and it does not move in the list", async () => {
  await using world = await openWorld();
  using watch = await world.owner.socket("/api/v2/chats/watch");
  const made = await createChat(world, PROMPT);
  const kinds: string[] = [];
  expect(made.title).toBe("please find out why the nightly…");
  (await world.models.next())
    .say("It is the certificate: it ran out on Monday. I have renewed it, and now a job looks every day.")
    .finish();
  for (const [asked, answer] of [
    ["title", ' "Nightly  deployment failure" '],
    ["two to five words", "renewed the certificate"],
    ["Sum up", "The certificate had run out. It was renewed."],
  ] as const) {
    const call = await world.models.next();
    expect(asks(call)).toContain(asked);
    expect(call.prompt).toContain("nightly deployment");
    call.say(answer).finish();
  }
  await contextOf(world.server).titles.idle();
  while (!kinds.includes("chat_summary_change")) kinds.push((await watch.json<WatchEvent>()).kind);
  expect(kinds.filter((kind) => kind !== "status_change")).toEqual([
    ...["created", "title_change", "summary_change", "chat_summary_change"],
  ]);
  const chat = await read(world, made.id);
  expect([chat.title, chat.last_turn_summary, chat.summary]).toEqual([
    ...["Nightly deployment failure", "renewed the certificate", "The certificate had run out. It was renewed."],
  ]);
  const row = await contextOf(world.server).chats.ask(made.id, "snapshot", {});
  expect(row.picture.status).toBe("waiting");
});

test("[TT-2] a title is asked for once, never over somebody's own; a label after each turn; a summary every third", async () => {
  await using world = await openWorld();
  const { id } = await createChat(world, PROMPT);
  await world.owner.patch(`/api/v2/chats/${id}`, { title: "Mine" });
  const first = await answerAll(world, id, { turn: "x".repeat(200), label: "looked at logs", summary: "First." });
  expect([first.title, first.last_turn_summary, first.summary]).toEqual(["Mine", "looked at logs", "First."]);
  for (const label of ["read the code", "fixed the bug"]) {
    await sendMessage(world, id, "go on");
    expect((await answerAll(world, id, { turn: "done", label })).last_turn_summary).toBe(label);
  }
  await sendMessage(world, id, "and on");
  const fourth = await answerAll(world, id, {
    ...{ turn: "y".repeat(200), label: "renamed a file", summary: "Fourth." },
  });
  expect(fourth.summary).toBe("Fourth.");
});

test("[TT-3] what comes too late, fails or is no title changes nothing; a label falls back to fixed words", async () => {
  await using world = await openWorld();
  const { id, title } = await createChat(world, "short");
  (await world.models.next()).say("fine").finish();
  const call = await world.models.next();
  await world.owner.patch(`/api/v2/chats/${id}`, { title: "Quicker" });
  call.say("Too late").finish();
  (await world.models.next()).fail("auth");
  await contextOf(world.server).titles.idle();
  const chat = await read(world, id);
  expect([chat.title, chat.last_turn_summary]).toEqual(["Quicker", "finished latest turn"]);
  expect(title).toBe("short");
  await sendMessage(world, id, "fail please");
  (await world.models.next()).fail("auth");
  (await world.models.next()).say("We have failed you.").finish();
  await contextOf(world.server).titles.idle();
  expect((await read(world, id)).last_turn_summary).toBe("hit an error");
});

test("[TT-4] a title can be proposed by the owner; nothing is stored", async () => {
  const clock = new ManualClock();
  await using world = await openWorld({ clock });
  const { id } = await createChat(world, PROMPT);
  await world.models.next();
  const propose = () => world.owner.fetch("POST", `/api/v2/chats/${id}/title/propose`);
  const answered = async (speak: (call: ScriptedCall) => void) => {
    const response = propose();
    speak(await world.models.next());
    return response;
  };
  const good = await answered((call) => call.say("Mending the deployment").finish());
  expect(await good.json()).toEqual({ title: "Mending the deployment" });
  const bad = await answered((call) => call.say("one two three four five six seven eight nine").finish());
  expect(await bad.json()).toEqual({ title: "please find out why the nightly…" });
  expect((await answered((call) => call.fail("usage_limit"))).status).toBe(409);
  expect((await answered((call) => call.fail("auth"))).status).toBe(400);
  expect((await answered(() => clock.advance(30_001))).status).toBe(504);
  expect((await read(world, id)).title).toBe("please find out why the nightly…");
});

test("[TT-4] without a model that can be asked the first words are proposed", async () => {
  await using world = await openChatWorld();
  const { id } = await createChat(world, PROMPT);
  expect(await world.owner.post(`/api/v2/chats/${id}/title/propose`, {})).toEqual({
    title: "please find out why the nightly…",
  });
});

test("[TT-5] of an answer only what fits is taken", () => {
  expect(titleFrom("“Fix  the\n build”")).toBe("Fix the build");
  expect(titleFrom("one two three four five six seven eight")).toBeDefined();
  for (const none of ["", ' "" ', "one two three four five six seven eight nine"])
    expect(titleFrom(none)).toBeUndefined();
  expect([...(titleFrom("x".repeat(200)) ?? "")].length).toBe(80);
  expect(labelFrom("fixed the tests")).toBe("fixed the tests");
  for (const none of [
    "fixed",
    "I fixed it",
    "The agent fixed it",
    "we did it",
    "fixed it all.",
    "fixed it\nand more",
    "a b c d e f",
  ]) {
    expect([none, labelFrom(none)]).toEqual([none, undefined]);
  }
  expect(summaryFrom("  A.\n B. ")).toBe("A. B.");
  expect(summaryFrom(" ")).toBeUndefined();
  expect(fallbackTitle([{ type: "file", file_id: "x" }])).toBe("New Chat");
  expect(fallbackTitle([{ type: "text", text: "one two three four five six seven" }])).toBe(
    "one two three four five six…",
  );
  const long = Array.from({ length: 50 }, (_, index) => ({
    role: index % 2 ? "assistant" : "user",
    content: [{ type: "text" as const, text: `${index} ${"y".repeat(3_000)}` }],
  }));
  expect(transcriptOf(long).length).toBeLessThan(6_100);
  expect(transcriptOf(long)).toContain("assistant: 49");
});
