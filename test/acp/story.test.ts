// Chats with coding agents: a real server, a real daemon and a program that speaks the Agent Client Protocol.
import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { AgentStep } from "#actors/chat/acp/step.ts";
import { SecretMask } from "#src/tools/mask.ts";
import { listPendingCalls, openAgentWorld, readAgentLog, startAgentChat } from "#test/support/acp/agent-world.ts";
import { until } from "#test/support/until.ts";
import { Follower, listMessages } from "#test/tools/world.ts";

test("[CA-1][CA-2] stores and streams an agent's text, thoughts and calls like a model's; questions wait for a person", async () => {
  await using world = await openAgentWorld();
  const { owner, home } = world;
  const permissions = { default: "ask_changes", rules: [] };
  const text = "think hmm\nsay hello\nrun echo one\nedit file two\nfree echo three\nsay bye";
  const { id, coding_agent } = await startAgentChat(world, text, { permissions });
  expect(coding_agent).toBe("test");
  using follower = await Follower.open(owner, id);
  await follower.until(({ status }) => status === "requires_action");
  const allowFirstPendingCall = async () => {
    const [call] = await listPendingCalls(owner, id);
    const answers = [{ tool_call_id: call?.tool_call_id, decision: "allow" }];
    await owner.post<unknown>(`/api/v2/chats/${id}/permissions`, { answers });
    return call;
  };
  const command = await allowFirstPendingCall();
  expect(command).toMatchObject({ tool_name: "execute", args: { command: "echo one" } });
  await until(async () => (await listPendingCalls(owner, id)).some(({ tool_name }) => tool_name === "write_file"));
  expect(existsSync(join(home, "file"))).toBe(false);
  await allowFirstPendingCall();
  await follower.until(({ status }) => status === "waiting");
  expect(readFileSync(join(home, "file"), "utf8")).toBe("two\n");
  const messages = (await listMessages(owner, id)).map(({ role, content }) => [
    role,
    ...content.map((part) => part.text ?? part.tool_name),
  ]);
  expect(messages).toEqual([
    ["user", text],
    ["assistant", "hmm", "hello", "execute"],
    ["tool", "execute"],
    ["assistant", "write_file"],
    ["tool", "write_file"],
    ["assistant", "execute"],
    ["tool", "execute"],
    ["assistant", "bye"],
  ]);
  expect(readAgentLog(world, id)).toEqual([
    "initialize",
    "new",
    `prompt ${JSON.stringify(text)}`,
    "answered yes",
    "answered yes",
  ]);
});

test("[CA-30] redacts known secrets in an agent's text, thoughts and plans, even when they arrive in two pieces", () => {
  const secret = "SUPERSECRETVALUE123";
  const shownParts: unknown[] = [];
  const mask = new SecretMask({ texts: [secret], agent_tokens: new Set(), keys: new Map() });
  const step = new AgentStep(
    mask,
    (part) => shownParts.push(structuredClone(part)),
    () => undefined,
    () => undefined,
  );
  const applyUpdate = (update: object): void => step.applyUpdate(update as never, 0, (id) => id, new Set());
  const sendText = (sessionUpdate: string, text: string): void =>
    applyUpdate({ sessionUpdate, content: { type: "text", text } });
  sendText("agent_thought_chunk", `so it is ${secret}`);
  sendText("agent_message_chunk", `it is ${secret.slice(0, 7)}`);
  sendText("agent_message_chunk", `${secret.slice(7)}, and SUPER`);
  applyUpdate({ sessionUpdate: "plan", entries: [{ content: `tell ${secret}`, status: "pending", priority: "high" }] });
  sendText("agent_message_chunk", "bye SUPER");
  const messages = step.toMessages(0, { error: "over" });
  expect(JSON.stringify([shownParts, messages])).not.toContain("SECRET");
  expect(messages[0]?.content.map(({ text }) => text)).toEqual([
    "so it is [hidden]",
    "it is [hidden], and SUPER",
    "Plan:\n- [ ] tell [hidden]\n",
    "bye SUPER",
  ]);
});
