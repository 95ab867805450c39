// Calls that need approval in `slipway chat`: it prompts on a terminal, follows an option, and only reports the calls in a pipe.
import { expect, test } from "bun:test";
import type { Chat } from "#schema/chats/chat.ts";
import type { ChatEvent } from "#schema/chats/chat-event.ts";
import { formatRequest, formatRequestLine } from "#src/cli/client/chat/permission-text.ts";
import { Client } from "#src/client.ts";
import { forFile } from "#test/support/for-file.ts";
import { until } from "#test/support/until.ts";
import { openDevWorld, readToken } from "./client-world.ts";

const world = await forFile(openDevWorld());
const admin = new Client(world.server.url, readToken(world));
await admin.put("/api/v2/chats/config/user-permissions", {
  permissions: { default: "allow", rules: [{ tool: "execute", action: "ask" }] },
});
// Once this command has run, the workspace's agent is connected.
await world.runOk(["workspaces", "shell", "dev", "--", "true"]);

const QUESTION = "v = never: ";
const parseId = (text: string): string => /[0-9a-f-]{36}/.exec(text)?.[0] ?? "";
/** Reads a program's output. `until` resolves as soon as the output contains the text, `ended` with the complete output. */
const listen = (output: ReadableStream<Uint8Array>) => {
  let received = "";
  const ended = (async () => {
    const decoder = new TextDecoder();
    for await (const chunk of output) received += decoder.decode(chunk, { stream: true });
    return received;
  })();
  return { ended, until: (text: string) => until(() => received.includes(text) && received) };
};
const newChatArgs = (...args: string[]): string[] => ["chat", "new", "--workspace", "dev", ...args];
const listRules = async (id: string) => (await admin.get<Chat>(`/api/v2/chats/${id}`)).permissions?.rules ?? [];

test("[CV-15] a terminal shows the whole command and asks to allow it once, always or never; earlier input does not count", async () => {
  const prompts = [
    'tool: execute {"command":"echo fi\'\'rst"}',
    'tool: execute {"command":"echo se\'\'cond \\"$HOME\\""}',
  ];
  await using terminal = world.runOnTerminal(`slipway chat new --workspace dev "$SAY"`, { SAY: prompts.join("\n") });
  // This is typed before the first question.
  terminal.type("y\r");
  const first = await terminal.until(QUESTION);
  expect(first).toContain("The model asks to use execute:\r\n    $ echo fi''rst\r\n");
  expect(first).not.toContain("Allow it? y = once, a = always, n = no, v = never: y");
  const id = parseId(terminal.shown());
  terminal.type("perhaps\r");
  await terminal.until(QUESTION);
  terminal.type("yes\r");
  expect(await terminal.until(QUESTION)).toContain("    $ echo se''cond \"$HOME\"\r\n");
  // A command with substitutions has no obvious prefix, so the user enters the words to remember.
  terminal.type("a\r");
  await terminal.until("first words of this command): ");
  terminal.type("\r");
  await terminal.until("the command is not a single plain one");
  await terminal.until(QUESTION);
  terminal.type("always\r");
  await terminal.until("first words of this command): ");
  terminal.type("echo\r");
  await terminal.until("from now on execute echo is allowed in this chat");
  await terminal.until("second");
  expect(await terminal.exited).toBe(0);
  expect((await listRules(id))[0]).toEqual({ tool: "execute", command: "echo", action: "allow" });

  // The same chat remembers this rule, and a rule that denies a command.
  await using secondTerminal = world.runOnTerminal(`slipway chat send ${id} 'run: rm -rf nothing'`);
  await secondTerminal.until(QUESTION);
  secondTerminal.type("v\r");
  await secondTerminal.until("first words of this command): ");
  secondTerminal.type("\r");
  await secondTerminal.until("from now on execute rm -rf nothing is denied");
  expect(await secondTerminal.exited).toBe(0);
  expect((await world.run(["chat", "send", id, "run: echo re''membered"])).err).toContain("\nremembered\n");
});

test("[CV-16] in a pipe, the command prints the request and waits for an answer from another terminal or --permissions", async () => {
  const chatProcess = world.spawn(newChatArgs("run: echo al''lowed"));
  const listener = listen(chatProcess.stderr);
  const printedRequest = await listener.until("on a terminal answers it)]\n");
  expect(printedRequest).toContain("[asks for permission: execute echo al''lowed (`slipway chat watch ");
  const id = parseId(printedRequest);
  {
    await using terminal = world.runOnTerminal(`slipway chat watch ${id}`);
    await terminal.until(QUESTION);
    // Someone else answers first, so the question is withdrawn, and the next one can be answered.
    const answered = await world.run(["chat", "watch", id, "--until-idle", "--permissions", "allow"]);
    expect(answered.err).toContain("[allowed: execute echo al''lowed]");
    await terminal.until("no longer waiting for approval");
    const second = world.run(["chat", "send", id, "run: echo th''en"]);
    await terminal.until(QUESTION);
    terminal.type("n\r");
    expect((await second).err).toContain("The user denied this call");
  }
  expect([await chatProcess.exited, await listener.ended]).toEqual([0, expect.stringContaining("\nallowed\n")]);

  const [denied, json, wrong] = await Promise.all([
    world.run(newChatArgs("--permissions", "deny", "run: echo de''nied")),
    world.run(newChatArgs("--json", "--permissions", "allow", "run: echo js''on")),
    world.run(newChatArgs("--permissions", "maybe", "hello")),
  ]);
  expect([denied.code, denied.err]).toEqual([0, expect.stringContaining("[denied: execute echo de''nied]\n")]);
  expect(denied.err).not.toContain("\ndenied\n");
  const events = json.out
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as ChatEvent);
  expect(events.find(({ type }) => type === "action_required")).toMatchObject({
    action_required: { kind: "permission" },
  });
  expect([json.code, json.err, json.out.includes('"exit_code":0')]).toEqual([0, "", true]);
  expect(wrong).toMatchObject({ code: 2, err: expect.stringContaining("expected ask, allow, deny") });
});

test("[CV-17] a sub-chat's request names its agent, even for followers that connect later", async () => {
  const chatProcess = world.spawn(newChatArgs("agent: run: echo fr''om an agent"));
  const listener = listen(chatProcess.stderr);
  const printedRequest = await listener.until(
    "[asks for permission: execute echo fr''om an agent (`slipway chat watch ",
  );
  await using terminal = world.runOnTerminal(`slipway chat watch ${parseId(printedRequest)} --until-idle`);
  const question = await terminal.until(QUESTION);
  expect(question).toMatch(/The agent ".+" asks to use execute:\r\n {4}\$ echo fr''om an agent\r\n/);
  terminal.type("y\r");
  expect(await terminal.exited).toBe(0);
  await listener.ended;
  expect([await chatProcess.exited, await chatProcess.stdout.text()]).toEqual([
    0,
    expect.stringContaining("The agent reports:"),
  ]);
});

test("[CV-15] a request escapes cursor codes, never truncates a command, and counts omitted characters", () => {
  const makeCall = (tool_name: string, args: object) => ({
    tool_call_id: "one",
    tool_name,
    args: JSON.stringify(args),
  });
  const disguised = makeCall("execute", {
    command: `ls\r\u001b[2Krm -rf ~ \u202e${"x".repeat(2_000)}\nend`,
    timeout: "10m",
  });
  expect(formatRequest(disguised)).toBe(
    `The model asks to use execute:\n    $ ls\\u000d\\u001b[2Krm -rf ~ \\u202e${"x".repeat(2_000)}\n    end\n    timeout: 10m\n`,
  );
  expect(formatRequestLine(disguised)).toMatch(/^execute ls\\u000d\\u001b\[2Krm -rf ~ \\u202ex+…$/);
  const file = formatRequest(makeCall("write_file", { path: "a/b", content: "y".repeat(1_000) }));
  expect(file).toBe(
    `The model asks to use write_file:\n    path: a/b\n    content: ${"y".repeat(400)}… (600 more characters)\n`,
  );
  expect(formatRequest({ tool_call_id: "one", tool_name: "x\u001b[2J", args: "no JSON" })).toContain(
    "use x:\n    args: no JSON\n",
  );
});
