// A chat in plan mode: what it may do, how it proposes its plan and asks questions, and how a person approves the plan.
import { expect } from "bun:test";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Chat } from "#schema/chats/chat.ts";
import { toPlanPath } from "#src/tools/available.ts";
import { Follower, sendMessage } from "#test/support/chats.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { getSystemPrompt, listToolNames } from "./family.ts";
import { callTools, listMessages, openChat, openToolWorld } from "./world.ts";

const isWaiting = ({ status }: Follower): boolean => status === "waiting";
const question = {
  header: "Storage",
  question: "Where shall it be kept?",
  options: [
    { label: "SQLite", description: "One file." },
    { label: "Memory", description: "Nothing is kept." },
  ],
};

testInProcess(
  "[PM-1] [PM-2] [PM-3] [PM-4] [PM-5] a chat reads, asks, writes only its plan, proposes it, and implements it once a person agrees",
  async () => {
    await using world = await openToolWorld();
    const { id, call } = await openChat(world, { plan_mode: "plan" });
    using follower = await Follower.open(world.owner, id);
    const path = toPlanPath(id);
    expect(getSystemPrompt(call)).toContain(path);
    expect(listToolNames(call)).toEqual(expect.arrayContaining(["propose_plan", "ask_user_question", "spawn_agent"]));
    const attempts = await callTools(
      world,
      call,
      ["write_file", { path: "code.ts", content: "x" }],
      ["process_list", {}],
      ["spawn_agent", { type: "general", prompt: "build it" }],
      ["ask_user_question", { questions: [{ ...question, options: question.options.slice(1) }] }],
      ["ask_user_question", { questions: [] }],
      ["propose_plan", { path }],
      ["propose_plan", { path: "code.ts" }],
    );
    expect(attempts.parts.every(({ is_error }) => is_error)).toBe(true);
    expect(attempts.results.map(({ error }) => error)).toEqual([
      // A call of a tool that was not offered gets its error when the step is stored, before the other calls run.
      expect.stringContaining('no tool "process_list"'),
      expect.stringContaining("only its plan may be written"),
      expect.stringContaining("only agents of the type explore"),
      ...[expect.stringContaining("do not fit"), expect.stringContaining("do not fit")],
      expect.stringContaining(path.slice(path.lastIndexOf("/") + 1)),
      expect.stringContaining("ends in .md"),
    ]);
    expect(existsSync(join(world.home, "code.ts"))).toBe(false);

    // A question ends the turn; the answer is an ordinary message.
    const callCount = world.models.calls.length;
    attempts.next.callTool("ask", "ask_user_question", { questions: [question] }).finish("tool_calls");
    await follower.until(isWaiting);
    expect([...follower.messages.values()].at(-1)?.content).toMatchObject([
      { type: "tool-result", tool_name: "ask_user_question", is_error: false, result: { questions: [question] } },
    ]);
    expect(world.models.calls).toHaveLength(callCount);
    const loadAwaits = async () => (await world.owner.get<Chat>(`/api/v2/chats/${id}`)).awaits;
    expect(await loadAwaits()).toBe("answer");
    const chats = await world.owner.get<Chat[]>("/api/v2/chats");
    expect(chats.find((chat) => chat.id === id)?.awaits).toBe("answer");
    await sendMessage(world, id, "SQLite");
    expect(await loadAwaits()).toBeUndefined();
    const nextCall = await world.models.next();
    expect(nextCall.prompt).toBe("SQLite");

    // The first plan is too long, the second is empty, and the third is valid. Its proposal ends the turn, so the queued message follows.
    const longPlan = await callTools(world, nextCall, ["write_file", { path, content: "x".repeat(32_769) }]);
    const refused = await callTools(world, longPlan.next, ["propose_plan", { path }]);
    expect(refused.results).toMatchObject([{ error: expect.stringContaining("the maximum is 32768") }]);
    const blankPlan = await callTools(world, refused.next, ["write_file", { path, content: " \n" }]);
    const empty = await callTools(world, blankPlan.next, ["propose_plan", { path }]);
    expect(empty.results).toMatchObject([{ error: expect.stringContaining("is empty") }]);
    const plan = "# Plan\n\n1. Keep it in SQLite – all of it.";
    const written = await callTools(world, empty.next, ["write_file", { path, content: plan }]);
    expect(written.results).toEqual([{ ok: true }]);
    await sendMessage(world, id, "and tests?");
    written.next.callTool("plan", "propose_plan", { path }).finish("tool_calls");
    const queuedCall = await world.models.next();
    expect(queuedCall.prompt).toBe("and tests?");
    const proposal = queuedCall.request.messages.findLast(({ role }) => role === "tool")?.content[0]?.result;
    expect(proposal).toMatchObject({ ok: true, path, kind: "plan", media_type: "text/markdown" });
    const { file_id } = proposal as { file_id: string };
    const file = await world.owner.fetch("GET", `/api/v2/chats/files/${file_id}`);
    expect(await file.text()).toBe(plan);
    const chat = await world.owner.get<{ plan_mode?: string; files: { id: string }[] }>(`/api/v2/chats/${id}`);
    expect(chat.files.map((chatFile) => chatFile.id)).toEqual([file_id]);
    // Only a person can end plan mode, not a proposed plan.
    expect(chat.plan_mode).toBe("plan");
    queuedCall.say("I will add them.").finish();
    await follower.until((events) => isWaiting(events) && events.history.at(-1) === "assistant: I will add them.");
    expect(await loadAwaits()).toBeUndefined();
    await sendMessage(world, id, "show it again");
    (await world.models.next()).callTool("again", "propose_plan", { path }).finish("tool_calls");
    await follower.until((events) => isWaiting(events) && /^tool/.test(events.history.at(-1) ?? ""));
    expect(await loadAwaits()).toBe("approval");
    await sendMessage(world, id, "Implement the plan", { plan_mode: "" });
    const implementationCall = await world.models.next();
    expect(getSystemPrompt(implementationCall)).not.toContain(path);
    expect(listToolNames(implementationCall)).not.toContain("propose_plan");
    const done = await callTools(
      world,
      implementationCall,
      ["write_file", { path: "code.ts", content: "x" }],
      ["propose_plan", { path }],
    );
    expect(done.results).toMatchObject([{ error: expect.stringContaining('no tool "propose_plan"') }, { ok: true }]);
    done.next.finish();
    await follower.until(isWaiting);
    expect((await listMessages(world.owner, id)).filter(({ role }) => role === "user")).toHaveLength(5);
  },
);

testInProcess("[PM-6] in plan mode, commands and their child processes can write only the plan", async () => {
  await using world = await openToolWorld();
  const { id, call } = await openChat(world, { plan_mode: "plan" });
  using follower = await Follower.open(world.owner, id);
  const path = toPlanPath(id);
  writeFileSync(join(world.home, "kept.txt"), "as it was");
  const written = await callTools(world, call, ["write_file", { path, content: "# Plan\n" }]);
  const enterHome = `cd ${world.home};`;
  const attempts = await callTools(
    world,
    written.next,
    ["execute", { command: `${enterHome} cat kept.txt && ls | wc -l && echo nothing > /dev/null && yes | head -1` }],
    ["execute", { command: `${enterHome} echo x > new.txt` }],
    [
      "execute",
      { command: `${enterHome} echo x >> kept.txt; truncate -s 0 kept.txt; sed -i s/was/is/ kept.txt; false` },
    ],
    ["execute", { command: `${enterHome} rm -f kept.txt; mv kept.txt moved.txt; mkdir folder; ln -s a b; false` }],
    ["execute", { command: `${enterHome} sh -c 'sh -c "touch deep.txt"'` }],
    ["execute", { command: `echo "1. Look" >> ${path.replace("~", '"$HOME"')}` }],
  );
  expect(attempts.results[0]).toMatchObject({ success: true, output: expect.stringMatching(/^as it was[\s\S]*y\n$/) });
  expect(attempts.results.slice(1).map(({ success }) => success)).toEqual([false, false, false, false, true]);
  expect(readdirSync(world.home).filter((name) => !name.startsWith("."))).toEqual(["kept.txt"]);
  expect(readFileSync(join(world.home, "kept.txt"), "utf8")).toBe("as it was");
  const read = await callTools(world, attempts.next, ["read_file", { path }]);
  expect(JSON.stringify(read.results)).toContain("1. Look");
  read.next.finish();
  await follower.until(isWaiting);
  // After plan mode, commands may write files again.
  await sendMessage(world, id, "go", { plan_mode: "" });
  const workCall = await world.models.next();
  const done = await callTools(world, workCall, ["execute", { command: `${enterHome} echo x > new.txt` }]);
  expect(done.results).toMatchObject([{ success: true }]);
  done.next.finish();
  await follower.until(isWaiting);
});
