// The owner of a chat compacts and clears the model's context, with a provider on a real socket.
import { expect, test } from "bun:test";
import type { AuditLog } from "#schema/audit.ts";
import type { Chat, ChatMessage, MessagePage } from "#schema/chats/chat.ts";
import { Client } from "#src/client.ts";
import { startServe } from "#test/api/edge/serve-process.ts";
import { createChat, Follower, formatMessage, sendMessage, toTextContent } from "#test/support/chats.ts";
import { type ModelCall, ModelServer } from "#test/support/models/model-server.ts";
import { addModel, openModelWorld } from "#test/support/models/model-world.ts";
import { ADMIN, tempDirectory } from "#test/support/server.ts";
import { isSummary, messagesIn, rolesIn, toRequestText } from "./model-requests.ts";

const finish = (call: ModelCall, text: string, input = 100): void =>
  call.say({ text }, { finish: "stop", usage: { input, output: 5 } }).end();
const WITHOUT_TITLES = { SLIPWAY_CHAT_TITLES: "false" };
const isWaiting = ({ status }: Follower): boolean => status === "waiting";
const hasMessages = (count: number) => (follower: Follower) => isWaiting(follower) && follower.history.length === count;
const hasLastMessage = (message: string) => (follower: Follower) =>
  isWaiting(follower) && follower.history.at(-1) === message;
const readOutcome = async (response: Response): Promise<[status: number, message: string]> => [
  response.status,
  ((await response.json()) as { message: string }).message,
];

const listMessages = async (owner: Client, id: string): Promise<ChatMessage[]> =>
  (await owner.get<MessagePage>(`/api/v2/chats/${id}/messages?limit=200`)).messages.reverse();

test("[CM-8] [CM-9] the owner compacts the history on request, once; a busy chat and one without new messages get 409", async () => {
  await using world = await openModelWorld();
  await addModel(world, "openai-compat");
  const { owner } = world;
  const nextCall = () => world.upstream.next();
  const chat = await createChat(world, "Keep it in Rust.");
  const path = `/api/v2/chats/${chat.id}`;
  const compact = (body: object = {}) => owner.fetch("POST", `${path}/compact`, body);
  using follower = await Follower.open(owner, chat.id);
  const firstCall = await nextCall();
  expect(await readOutcome(await compact())).toEqual([409, expect.stringContaining("busy")]);
  finish(firstCall, "the first answer");
  await follower.until(isWaiting);
  expect((await owner.get<Chat>(path)).status).toBe("waiting");

  for (const [body, status] of [
    [{ instructions: "x".repeat(4_097) }, 400],
    [{ instructions: 5 }, 400],
    [{ instruction: "typo" }, 400],
  ] as const) {
    expect([body, (await compact(body)).status]).toEqual([body, status]);
  }
  const started = (await (await compact({ instructions: "Dwell on the borrow checker." })).json()) as Chat;
  expect(started).toMatchObject({ id: chat.id, status: "running" });
  const summaryCall = await nextCall();
  expect(isSummary(summaryCall)).toBe(true);
  expect(toRequestText(summaryCall)).toContain("Dwell on the borrow checker.");
  expect(toRequestText(summaryCall)).toContain("the first answer");
  await follower.until(({ events }) =>
    events.some((event) => event.type === "message_part" && event.message_part.part.tool_name === "chat_summarized"),
  );
  // A message that arrives during the compaction waits for its end, and is answered from the summary.
  expect((await sendMessage(world, chat.id, "go on")).queued).toBe(true);
  finish(summaryCall, "SUMMARY ONE");
  const shortened = await nextCall();
  expect(rolesIn(shortened)).toBe("system user");
  expect(messagesIn(shortened)[1]?.content).toMatch(/SUMMARY ONE[\s\S]*Keep it in Rust\./);
  expect(messagesIn(shortened)[1]?.content).not.toContain("borrow checker");
  finish(shortened, "the second answer");
  await follower.until(hasMessages(6));
  const messages = await listMessages(owner, chat.id);
  expect(follower.history).toEqual(messages.map(formatMessage));
  expect(messages.map(formatMessage)).toEqual([
    ...["user: Keep it in Rust.", "assistant: the first answer", "assistant: tool-call", "tool: tool-result"],
    ...["user: go on", "assistant: the second answer"],
  ]);
  expect(messages[2]?.content).toMatchObject([
    { tool_name: "chat_summarized", args: { instructions: "Dwell on the borrow checker." } },
  ]);
  expect(messages[3]?.content).toMatchObject([{ result: { summary: "SUMMARY ONE", source: "manual" } }]);
  const turnSummary = (await owner.get<Chat>(path)).last_turn_summary;

  // A failed compaction changes nothing and reports the reason. After the next one succeeds, there is nothing to compact.
  expect((await compact()).status).toBe(200);
  (await nextCall()).answer(401, { error: { message: "no such key", type: "invalid" } });
  await follower.until(({ status }) => status === "error");
  expect((await owner.get<Chat>(path)).last_error).toMatchObject({ kind: "auth" });
  expect((await listMessages(owner, chat.id)).length).toBe(6);
  expect((await compact()).status).toBe(200);
  finish(await nextCall(), "SUMMARY TWO");
  await follower.until(isWaiting);
  const compacted = await owner.get<Chat>(path);
  expect(compacted.last_error).toBeUndefined();
  expect(compacted.last_turn_summary).toBe(turnSummary);
  expect(await readOutcome(await compact())).toEqual([409, expect.stringContaining("nothing to summarize")]);

  // An interrupted compaction is not retried, and nothing is lost.
  await sendMessage(world, chat.id, "third");
  finish(await nextCall(), "the third answer");
  await follower.until(hasLastMessage("assistant: the third answer"));
  expect((await compact()).status).toBe(200);
  await nextCall();
  await owner.post(`${path}/interrupt`);
  await follower.until(isWaiting);
  await sendMessage(world, chat.id, "fourth");
  const fullCall = await nextCall();
  expect([isSummary(fullCall), rolesIn(fullCall)]).toEqual([false, "system user assistant user"]);
  finish(fullCall, "done");
  await follower.until(hasLastMessage("assistant: done"));

  const { audit_logs } = await owner.get<{ audit_logs: AuditLog[] }>(
    `/api/v2/audit?q=resource_id:${chat.id}&limit=100`,
  );
  expect(audit_logs.filter(({ additional_fields }) => additional_fields.operation === "compact")).toHaveLength(4);
  expect(JSON.stringify(audit_logs)).not.toContain("borrow checker");
});

test("[CM-10] a cleared chat starts over for its model and stays complete for people, after edits, forks and summaries", async () => {
  await using world = await openModelWorld();
  await addModel(world, "anthropic");
  const { owner } = world;
  const nextCall = () => world.upstream.next();
  const chat = await createChat(world, "The password is swordfish.");
  const path = `/api/v2/chats/${chat.id}`;
  const clear = () => owner.fetch("POST", `${path}/clear`);
  using follower = await Follower.open(owner, chat.id);
  const firstCall = await nextCall();
  expect(await readOutcome(await clear())).toEqual([409, expect.stringContaining("busy")]);
  firstCall.answer(400, { type: "error", error: { type: "invalid_request_error", message: "no" } });
  await follower.until(({ status }) => status === "error");

  // Clearing a chat also clears its error.
  const cleared = (await (await clear()).json()) as Chat;
  expect([cleared.status, cleared.last_error]).toEqual(["waiting", undefined]);
  await follower.until(isWaiting);
  expect(await readOutcome(await clear())).toEqual([409, expect.stringContaining("nothing to clear")]);
  expect(follower.history).toEqual(["user: The password is swordfish.", "assistant: tool-call", "tool: tool-result"]);
  const messages = await listMessages(owner, chat.id);
  expect(messages.map(formatMessage)).toEqual(follower.history);
  expect(messages[1]?.content).toMatchObject([{ tool_name: "chat_cleared" }]);

  await sendMessage(world, chat.id, "Who are you?");
  const freshCall = await nextCall();
  expect(rolesIn(freshCall)).toBe("user");
  expect(toRequestText(freshCall)).not.toContain("swordfish");
  finish(freshCall, "I am new here.");
  await follower.until(hasMessages(5));

  // A later compaction and the calls after it contain nothing from before the clearing.
  expect((await owner.fetch("POST", `${path}/compact`, {})).status).toBe(200);
  const summaryCall = await nextCall();
  expect(isSummary(summaryCall)).toBe(true);
  expect(toRequestText(summaryCall)).not.toContain("swordfish");
  expect(toRequestText(summaryCall)).toContain("I am new here");
  finish(summaryCall, "NOTES");
  await follower.until(hasMessages(7));
  await sendMessage(world, chat.id, "And now?");
  const compactedCall = await nextCall();
  expect(toRequestText(compactedCall)).toContain("NOTES");
  expect(toRequestText(compactedCall)).toContain("Who are you?");
  expect(toRequestText(compactedCall)).not.toContain("swordfish");
  finish(compactedCall, "Now this.");
  await follower.until(hasMessages(9));

  // A fork is also cleared; editing an earlier message restores the history.
  const fork = await owner.post<Chat>(`${path}/fork`, {});
  expect((await listMessages(owner, fork.id)).map(formatMessage)).toEqual(follower.history);
  await sendMessage(world, fork.id, "copied?");
  const forkCall = await nextCall();
  expect(toRequestText(forkCall)).not.toContain("swordfish");
  finish(forkCall, "yes");
  await owner.patch(`${path}/messages/${messages[0]?.id}`, { content: toTextContent("The password is marlin.") });
  const editedCall = await nextCall();
  expect(rolesIn(editedCall)).toBe("user");
  expect(toRequestText(editedCall)).toContain("marlin");
  finish(editedCall, "noted");
  await follower.until(hasMessages(2));

  const { audit_logs } = await owner.get<{ audit_logs: AuditLog[] }>(
    `/api/v2/audit?q=resource_id:${chat.id}&limit=100`,
  );
  expect(audit_logs.filter(({ additional_fields }) => additional_fields.operation === "clear")).toHaveLength(1);
});

test("[CM-8] completes a requested compaction once after kill -9", async () => {
  using directory = tempDirectory();
  await using upstream = await ModelServer.start();
  let id = "";
  {
    await using server = await startServe(directory.path, WITHOUT_TITLES);
    const owner = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
    const [organization] = await owner.get<{ id: string }[]>("/api/v2/organizations");
    const world = { owner, upstream, organization_id: organization?.id ?? "" };
    await addModel(world);
    id = (await createChat(world, "hello")).id;
    using follower = await Follower.open(owner, id);
    finish(await upstream.next(), "an answer");
    await follower.until(isWaiting);
    await owner.post(`/api/v2/chats/${id}/compact`, { instructions: "Mind the gap." });
    expect(isSummary(await upstream.next())).toBe(true);
    server.child.kill("SIGKILL");
    await server.child.exited;
  }
  await using server = await startServe(directory.path, WITHOUT_TITLES);
  const owner = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  using follower = await Follower.open(owner, id);
  const summaryCall = await upstream.next();
  expect(isSummary(summaryCall)).toBe(true);
  expect(toRequestText(summaryCall)).toContain("Mind the gap.");
  finish(summaryCall, "SUMMARY");
  await follower.until(isWaiting);
  expect(follower.history).toEqual([
    "user: hello",
    "assistant: an answer",
    "assistant: tool-call",
    "tool: tool-result",
  ]);
});
