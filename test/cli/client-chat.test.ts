// `slipway chat`: the demo model's answers on a terminal, in a pipe, and after a broken connection.
import { expect, test } from "bun:test";
import type { Chat } from "#schema/chats/chat.ts";
import type { ChatEvent } from "#schema/chats/chat-event.ts";
import { ChatPrinter } from "#src/cli/client/chat/printer.ts";
import { createMarks, MarkReader } from "#src/cli/client/workspaces/shell-command.ts";
import { EscapeKeys } from "#src/cli/client/workspaces/shell-keys.ts";
import { Client } from "#src/client.ts";
import { forFile } from "#test/support/for-file.ts";
import { CuttableProxy, openClientWorld, readToken, signInAs } from "./client-world.ts";

const world = await forFile(openClientWorld());
await signInAs(world);

test("[CV-12] `chat` streams the response to standard output and the rest to standard error; chats are continued, listed and watched", async () => {
  const first = await world.run(["chat", "new", "think:", "about", "it"]);
  expect(first).toMatchObject({ code: 0, out: "That is what I have thought about.\n" });
  expect(first.err).toMatch(/^Chat [0-9a-f-]{36}\nabout it$/m);
  const id = /[0-9a-f-]{36}/.exec(first.err)?.[0] ?? "";
  const second = await world.run(["chat", "send", id.slice(0, 8)], { stdin: "say: from a pipe\n" });
  expect(second).toMatchObject({ code: 0, out: "from a pipe\n" });
  const [list, watched, events, failed, unknown, nothingToDo] = await Promise.all([
    world.runOk(["chat", "list"]),
    world.runOk(["chat", "watch", id, "--until-idle"]),
    world.runOk(["chat", "watch", id, "--until-idle", "--json"]),
    world.run(["chat", "new", "fail: auth"]),
    world.run(["chat", "new", "hello", "--model", "clever"]),
    world.run(["chat", "new"]),
  ]);
  expect(list).toMatch(new RegExp(`^CHAT +STATUS +CHANGED +TITLE\\n[^]*${id.slice(0, 8)} +done +`));
  expect(watched).toBe("> think: about it\nThat is what I have thought about.\n> say: from a pipe\nfrom a pipe\n");
  const types = events
    .trim()
    .split("\n")
    .map((line) => (JSON.parse(line) as ChatEvent).type);
  expect(types.filter((type) => type === "message")).toHaveLength(4);
  expect(failed).toMatchObject({ code: 1, err: expect.stringContaining("refused the credentials") });
  expect(unknown).toMatchObject({ code: 1, err: expect.stringContaining("there is no model clever; there are demo") });
  expect(nothingToDo).toMatchObject({ code: 2, err: expect.stringContaining("expected a message") });
});

test("[CV-21] a chat's owner compacts and clears its history, by command or by message", async () => {
  const first = await world.run(["chat", "new", "say: remember me"]);
  const id = /[0-9a-f-]{36}/.exec(first.err)?.[0] ?? "";
  const compacted = await world.run(["chat", "compact", id, "keep", "it", "short"]);
  expect([compacted.code, compacted.err]).toEqual([0, expect.stringContaining("▸ chat_summarized")]);
  expect(compacted.err).toContain("keep it short");
  const nothingToDo = await world.run(["chat", "send", id, "/compact", "again"]);
  expect([nothingToDo.code, nothingToDo.err]).toEqual([1, expect.stringContaining("nothing to summarize")]);
  expect(await world.runOk(["chat", "clear", id])).toContain("Context cleared");
  const secondClear = await world.run(["chat", "send", id, "/clear"]);
  expect([secondClear.code, secondClear.err]).toEqual([1, expect.stringContaining("nothing to clear")]);
  // Only an exact command word is a command. Other text that starts with one is sent as a message.
  expect(await world.runOk(["chat", "send", id, "say: /clearly"])).toBe("/clearly\n");
  expect(await world.runOk(["chat", "send", id, "/clear", "--json"])).toContain(`"id":"${id}"`);
  expect(await world.run(["chat", "compact"])).toMatchObject({ code: 2 });
});

test("[CV-13] Ctrl-C interrupts the turn and keeps its output; a broken connection is reopened without repeating output", async () => {
  const admin = new Client(world.server.url, readToken(world));
  using proxy = new CuttableProxy(world.server.url);
  const phrase = "one two three four five six seven eight";
  const child = world.spawn(["chat", "new", "hang:", "begun"]);
  let err = "";
  const decoder = new TextDecoder();
  const reading = (async () => {
    for await (const chunk of child.stderr) err += decoder.decode(chunk, { stream: true });
  })();
  for await (const _ of child.stdout) child.kill("SIGINT");
  expect(await child.exited).toBe(130);
  await reading;
  const id = /[0-9a-f-]{36}/.exec(err)?.[0] ?? "";
  const { status } = await admin.get<Chat>(`/api/v2/chats/${id}`);
  expect(["interrupting", "waiting"]).toContain(status);

  const chatOptions = ["--url", proxy.url, "--token", readToken(world)];
  const slow = world.spawn(["chat", "new", `slow: ${phrase}`, ...chatOptions]);
  let out = "";
  let isCut = false;
  for await (const chunk of slow.stdout) {
    out += decoder.decode(chunk, { stream: true });
    if (isCut) continue;
    isCut = true;
    proxy.cut();
  }
  expect([await slow.exited, out]).toEqual([0, `${phrase}\n`]);
});

test("[CV-12] prints parts and complete messages once, removes escape sequences, and announces a restarted step", () => {
  let out = "";
  let notes = "";
  const printer = new ChatPrinter({
    writeAnswer(text) {
      out += text;
    },
    writeNote(text) {
      notes += text;
    },
    showsUsers: false,
    isColored: false,
  });
  const base = { chat_id: "c" } as const;
  const makePartEvent = (generation_attempt: number, seq: number, part: object): ChatEvent =>
    ({
      ...base,
      type: "message_part",
      message_part: { history_version: 1, generation_attempt, seq, role: "assistant", part },
    }) as ChatEvent;
  const makeMessage = (id: number, role: string, content: object[]): ChatEvent =>
    ({ ...base, type: "message", message: { id, chat_id: "c", created_at: "", role, content } }) as ChatEvent;
  const call = { type: "tool-call", tool_call_id: "t", tool_name: "execute", args: { command: "ls" } };
  printer.show(makePartEvent(1, 1, { type: "text", text: "lost" }));
  printer.show(makePartEvent(2, 1, { type: "text", text: "\u001b]0;evil\u0007Look" }));
  printer.show(makePartEvent(2, 2, call));
  printer.show(makeMessage(1, "assistant", [{ type: "text", text: "\u001b]0;evil\u0007Look here" }, call]));
  printer.show(makePartEvent(2, 3, { type: "tool-result", tool_call_id: "t", result_delta: "file\n" }));
  const result = { type: "tool-result", tool_call_id: "t", tool_name: "execute", result: { exit_code: 0 } };
  printer.show(makeMessage(2, "tool", [result]));
  printer.show(makeMessage(2, "tool", [result]));
  expect(out).toBe("lostLook here\n");
  expect(notes).toBe("\n[starting over]\n\n▸ execute ls\nfile\n◂ done\n");
});

test("[CV-9][CV-10] distinguishes keys and markers from lookalikes, however they are split", () => {
  const keys = new EscapeKeys();
  const pressed = ["a~", ".\r", "~", "~x\r~y\r", "~", "."].map((input) => keys.press(input));
  expect(pressed.map(({ data }) => data).join("")).toBe("a~.\r~x\r~y\r");
  expect(pressed.at(-1)?.disconnects).toBe(true);
  const marks = createMarks("00000000-0000-4000-8000-000000000001");
  const bytes = new TextEncoder().encode(
    `a\u001e${marks.ready}b\u001e0000${marks.consumed}\u00e9${marks.exit}x${marks.exit}255${marks.end}c${marks.exit}1`,
  );
  for (const size of [1, 2, 7, 100, 1_000]) {
    const reader = new MarkReader(marks);
    const total = { output: [] as number[], ready: 0, consumedCount: 0, exit: -1 };
    for (let offset = 0; offset < bytes.byteLength; offset += size) {
      const { output, isReady, consumedCount, exit } = reader.read(bytes.subarray(offset, offset + size));
      total.output.push(...output);
      total.ready += Number(isReady);
      total.consumedCount += consumedCount;
      total.exit = exit ?? total.exit;
    }
    total.output.push(...reader.takeHeld());
    const text = new TextDecoder().decode(new Uint8Array(total.output));
    expect([size, text, total.ready, total.consumedCount, total.exit]).toEqual([
      size,
      `a\u001eb\u001e0000\u00e9${marks.exit}xc${marks.exit}1`,
      ...[1, 1, 255],
    ]);
  }
});
