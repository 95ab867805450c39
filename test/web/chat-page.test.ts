// The pure functions of the chat page: state from stream events, blocks of a growing text, diffs, suggestions, groups.
import { expect, test } from "bun:test";
import fc from "fast-check";
import type { Chat, ChatMessage } from "#schema/chats/chat.ts";
import type { ChatEvent } from "#schema/chats/chat-event.ts";
import { makeRules } from "#src/tools/permission.ts";
import { formatAnswers } from "#src/web/app/pages/chat/answer-text.ts";
import { BlockParser } from "#src/web/app/pages/chat/blocks.ts";
import { groupChats } from "#src/web/app/pages/chat/groups.ts";
import { formatAlwaysLabel, formatQuestion, shortenFolder, toRows } from "#src/web/app/pages/chat/permission-words.ts";
import {
  applyFrame,
  collectResults,
  countContextTokens,
  EMPTY_STATE,
  mergeMessages,
  reconcileMessages,
} from "#src/web/app/pages/chat/picture.ts";
import { findCommand, listOffers } from "#src/web/app/pages/chat/suggest.ts";
import { parseFiles, toShownPieces } from "#src/web/app/parts/diff/diff-lines.ts";

const chat_id = "00000000-0000-4000-8000-000000000001";
const makeMessage = (
  id: number,
  role: ChatMessage["role"] = "user",
  fields: Partial<ChatMessage> = {},
): ChatMessage => ({
  id,
  chat_id,
  role,
  created_at: "2026-01-01T00:00:00Z",
  content: [{ type: "text", text: `m${id}` }],
  ...fields,
});
const makeMessageEvent = (toSend: ChatMessage): ChatEvent => ({ type: "message", chat_id, message: toSend });
const makePartEvent = (part: object, role = "assistant"): ChatEvent => ({
  type: "message_part",
  chat_id,
  message_part: { history_version: 1, generation_attempt: 1, seq: 1, role, part: part as never },
});
const makeStatusEvent = (text: string): ChatEvent => ({ type: "status", chat_id, status: { status: text } });
const reset: ChatEvent = { type: "preview_reset", chat_id };

test("[CB-1] deltas are joined into one part each, and the finished message replaces the parts", () => {
  const args = ['{"command":"l', 's"}'];
  const writing = applyFrame(EMPTY_STATE, [
    makeMessageEvent(makeMessage(1)),
    makeStatusEvent("running"),
    reset,
    makePartEvent({ type: "reasoning", text: "h" }),
    makePartEvent({ type: "reasoning", text: "m" }),
    makePartEvent({ type: "text", text: "a" }),
    makePartEvent({ type: "text", text: "b" }),
    ...args.map((args_delta) =>
      makePartEvent({ type: "tool-call", tool_call_id: "c", tool_name: "execute", args_delta }),
    ),
  ]);
  expect(writing.live).toMatchObject([{ text: "hm" }, { text: "ab" }, { args_delta: '{"command":"ls"}' }]);
  const done = applyFrame(writing, [makeMessageEvent(makeMessage(2, "assistant")), reset]);
  expect([done.live, done.messages.map(({ id }) => id)]).toEqual([[], [1, 2]]);
  const running = applyFrame(done, [
    makePartEvent({ type: "tool-result", tool_call_id: "c", result_delta: "one\n" }, "tool"),
    makePartEvent({ type: "tool-result", tool_call_id: "c", result_delta: "two" }, "tool"),
  ]);
  expect(running.liveResults.get("c")?.text).toBe("one\ntwo");
  const restarted = applyFrame(running, [
    makePartEvent({ type: "tool-result", tool_call_id: "c", result_reset: true }, "tool"),
  ]);
  expect(restarted.liveResults.get("c")?.text).toBe("");
  const result = makeMessage(3, "tool", {
    content: [{ type: "tool-result", tool_call_id: "c", result: { output: "x" } }],
  });
  const ended = applyFrame(restarted, [makeMessageEvent(result)]);
  expect([ended.liveResults.size, collectResults(ended.messages).get("c")?.result]).toEqual([0, { output: "x" }]);
});

test("[CB-1] a retry is shown until output arrives, and a question until the chat continues", () => {
  const retry = { attempt: 1, delay_ms: 1, error: "busy", kind: "overloaded", retrying_at: "2026-01-01T00:00:00Z" };
  const approvalRequest: ChatEvent = {
    type: "action_required",
    chat_id,
    action_required: { kind: "permission", tool_calls: [] },
  };
  const retrying = applyFrame(EMPTY_STATE, [
    makeStatusEvent("running"),
    { type: "retry", chat_id, retry } as ChatEvent,
    reset,
  ]);
  expect(retrying.retry?.error).toBe("busy");
  expect(applyFrame(retrying, [reset]).retry).toBeUndefined();
  expect(applyFrame(retrying, [makePartEvent({ type: "text", text: "a" })]).retry).toBeUndefined();
  const awaitingApproval = applyFrame(retrying, [makeStatusEvent("requires_action"), approvalRequest]);
  expect([awaitingApproval.actionRequired?.kind, awaitingApproval.retry]).toEqual(["permission", undefined]);
  expect(applyFrame(awaitingApproval, [makeStatusEvent("running")]).actionRequired).toBeUndefined();
  const slot: ChatEvent = {
    type: "status",
    chat_id,
    status: { status: "running", warnings: ["waits"], queued_for_capacity: true },
  };
  const queued = applyFrame(EMPTY_STATE, [slot]);
  expect([queued.waitsForSlot, applyFrame(queued, [makeStatusEvent("waiting")]).waitsForSlot]).toEqual([true, false]);
});

test("[CB-12] each ended turn is counted once, even if it started and ended within one frame", () => {
  const countTurns = (frames: readonly ChatEvent[][]): number[] => {
    let state = EMPTY_STATE;
    return frames.map((frame) => {
      state = applyFrame(state, frame);
      return state.turnCount;
    });
  };
  const [question, answer] = [makeMessageEvent(makeMessage(1)), makeMessageEvent(makeMessage(2, "assistant"))];
  // Opened: nothing has happened yet.
  const opened = [makeStatusEvent("waiting")];
  const slow = [
    [makeStatusEvent("running"), question],
    [makePartEvent({ type: "text", text: "a" })],
    [answer, makeStatusEvent("waiting")],
    [reset],
  ];
  expect(countTurns([opened, ...slow])).toEqual([0, 0, 0, 1, 1]);
  // The whole turn arrives in one frame, so the status before and after it is equal.
  expect(countTurns([opened, [question, makeStatusEvent("running"), answer, makeStatusEvent("waiting")]])).toEqual([
    0, 1,
  ]);
  expect(countTurns([opened, [question, answer]])).toEqual([0, 1]);
  expect(countTurns([opened, [makeStatusEvent("running")], [makeStatusEvent("error")]])).toEqual([0, 0, 1]);
  expect(countTurns([opened, [makeStatusEvent("running")], [makeStatusEvent("requires_action")]])).toEqual([0, 0, 0]);
});

test("[CB-2] the page loaded after a disconnect removes edited messages and keeps older ones", () => {
  const listIds = (messages: readonly ChatMessage[]) => messages.map(({ id }) => id);
  const shown = [1, 2, 3, 4, 5].map((id) => makeMessage(id));
  const page = (...ids: number[]) => ids.map((id) => makeMessage(id));
  expect(listIds(reconcileMessages(shown, page(2, 3, 8, 9), true))).toEqual([1, 2, 3, 8, 9]);
  expect(listIds(reconcileMessages(shown, page(1, 2, 7), false))).toEqual([1, 2, 7]);
  // So many messages arrived during the disconnect that the two ranges do not overlap.
  expect(listIds(reconcileMessages(shown, page(50, 51), true))).toEqual([50, 51]);
  expect(listIds(reconcileMessages([], page(3, 4), true))).toEqual([3, 4]);
  expect(listIds(mergeMessages(page(3, 4), page(1, 2, 4)))).toEqual([1, 2, 3, 4]);
});

const PIECES = [
  "word ",
  "**bold** ",
  "\n\n",
  "- item\n",
  "1. one\n",
  "> quote\n",
  "```sh\necho $x\n```\n",
  "# head\n",
  "| a | b |\n|---|---|\n| 1 | 2 |\n",
  "    code\n",
  "\n",
  "`x`",
  "```",
  "***\n",
];

test("[CB-6] a growing text parses like the whole text, and finished blocks stay the same objects", () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...PIECES), { maxLength: 25 }), (pieces) => {
      const growing = new BlockParser();
      let text = "";
      let previousTokens: readonly unknown[] = [];
      for (const piece of pieces) {
        text += piece;
        const tokens = growing.parse(text);
        for (const [index, token] of previousTokens.slice(0, -2).entries())
          expect(tokens[index] === token || index >= previousTokens.length - 3).toBe(true);
        previousTokens = tokens;
      }
      expect(
        previousTokens
          .map((token) => (token as { raw: string }).raw)
          .join("")
          .trim(),
      ).toBe(
        new BlockParser()
          .parse(text)
          .map(({ raw }) => raw)
          .join("")
          .trim(),
      );
    }),
  );
});

test("[CB-1] a diff has its files, lines, numbers and the differences within a line", () => {
  const diff = `diff --git a/x b/x
--- a/x
+++ b/x
@@ -1,3 +1,2 @@ head
 same
-let a = 1
+let a = 2
--- looks like a head
\\ No newline at end of file
diff --git a/new b/new
new file mode 100644
--- /dev/null
+++ b/new
@@ -0,0 +1 @@
+++ b/x
diff --git a/gone b/gone
deleted file mode 100644
`;
  const [changedFile, addedFile, deletedFile, ...otherFiles] = parseFiles(diff);
  expect(otherFiles).toEqual([]);
  expect(changedFile).toMatchObject({ path: "x", kind: "changed", added: 1, removed: 2 });
  expect(changedFile?.lines.map(({ kind, before, after }) => [kind, before, after])).toEqual([
    ["hunk", undefined, undefined],
    ["same", 1, 1],
    ["del", 2, undefined],
    ["add", undefined, 2],
    ["del", 3, undefined],
  ]);
  expect(changedFile?.lines[3]?.mark).toEqual([8, 9]);
  expect(addedFile).toMatchObject({ path: "new", kind: "new", added: 1, lines: [{}, { text: "++ b/x" }] });
  expect(deletedFile).toMatchObject({ path: "gone", kind: "deleted", lines: [] });
});

test("[CB-13] a diff line shows characters that reorder or hide text, but no carriage return at its end", () => {
  const diff = `--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-if (role != "user") {\r\n+if (role != "user\u202e \u2066// admin\u2069") {\r\n-a\tb\n+a\rb\u00ad\u200b\n`;
  const shown = parseFiles(diff)[0]?.lines.map(toShownPieces);
  expect(shown?.slice(1)).toEqual([
    ['if (role != "user") {', "", ""],
    ['if (role != "user', "\\u202e \\u2066// admin\\u2069", '") {'],
    ["a", "\tb", ""],
    ["a", "\\u000db\\u00ad\\u200b", ""],
  ]);
});

test("[CB-3] suggestions while typing: commands at the start, files after an @", () => {
  const calls: string[] = [];
  const commands = [
    { name: "compact", description: "", act: (rest: string) => calls.push(rest) },
    { name: "clear", description: "", act: () => calls.push("clear") },
  ];
  const files = ["src/a.ts", "src/b.ts"];
  expect(listOffers("/c", 2, commands, files).map(({ label: makeLabel }) => makeLabel)).toEqual(["/compact", "/clear"]);
  expect(listOffers("a /c", 4, commands, files)).toEqual([]);
  expect(listOffers("look at @B and", 10, commands, files)[0]?.replace("look at @B and")).toBe(
    "look at @src/b.ts  and",
  );
  expect(listOffers("me@b", 4, commands, files)).toEqual([]);
  findCommand("/compact keep names", commands)?.();
  expect([calls, findCommand("/else", commands), findCommand("/etc/passwd", commands)]).toEqual([
    ["keep names"],
    undefined,
    undefined,
  ]);
});

test("[CB-13] the always-allow button names the rules that the server would add, and is hidden without rules", () => {
  const makeLabel = (command: string) =>
    formatAlwaysLabel(makeRules({ tool_name: "execute", args: { command } }, "allow"));
  expect(makeLabel("git status -s")).toBe("Always allow git status");
  expect(makeLabel("cd src && npm test")).toBe("Always allow cd src, npm test");
  expect(makeLabel("npm run lint && cargo build --release && go test ./... && make everything-there-is")).toBe(
    "Always allow these 4 commands",
  );
  expect(makeLabel("cat <x")).toBeUndefined();
  expect(makeLabel("")).toBeUndefined();
  expect(formatAlwaysLabel(makeRules({ tool_name: "issues__create", args: {} }, "allow"))).toBe(
    "Always allow this tool",
  );
});

test("[CB-13] folders in the workspace's home are shown relative to it, other folders with their full path", () => {
  const home = `/srv/data/workspaces/${chat_id}/home`;
  expect(shortenFolder(home, chat_id)).toBe("~");
  expect(shortenFolder(`${home}/work`, chat_id)).toBe("~/work");
  for (const folder of ["", "/tmp", `${home}stead`]) expect(shortenFolder(folder, chat_id)).toBe(folder);
  expect(shortenFolder(`${home}/work`, undefined)).toBe(`${home}/work`);
});

test("[CB-13] a call is described in words, and its arguments are rows of a form", () => {
  const makeRequest = (tool_name: string, args: unknown) => ({
    tool_call_id: "c",
    tool_name,
    args: JSON.stringify(args),
  });
  expect(formatQuestion(makeRequest("execute", { command: "ls" }), false)).toBe("Run this command?");
  expect(formatQuestion(makeRequest("write_file", { path: "a/b.ts" }), true)).toBe("Create b.ts?");
  expect(formatQuestion(makeRequest("write_file", { path: "a/b.ts" }), false)).toBe("Replace b.ts?");
  expect(formatQuestion(makeRequest("write_file", { path: "a/b.ts" }), undefined)).toBe("Write b.ts?");
  expect(formatQuestion(makeRequest("edit_files", { files: [{ path: "a/b.ts" }] }), false)).toBe("Edit b.ts?");
  expect(formatQuestion(makeRequest("edit_files", { files: [{}, {}] }), false)).toBe("Edit 2 files?");
  expect(formatQuestion(makeRequest("issues__create_issue", {}), false)).toBe("Use create issue of issues?");
  expect(
    toRows(makeRequest("issues__create", { title: "Sum is wrong", urgent: true, votes: 3, labels: ["bug"] })),
  ).toEqual([
    { name: "title", value: "Sum is wrong", isText: true },
    { name: "urgent", value: "Yes", isText: true },
    { name: "votes", value: "3", isText: true },
    { name: "labels", value: '[\n  "bug"\n]', isText: false },
  ]);
  expect(toRows({ tool_call_id: "c", tool_name: "x", args: "no JSON" })).toEqual([
    { name: "Arguments", value: "no JSON", isText: true },
  ]);
});

test("[CB-1] chats that need the user come first, including chats whose sub-chat waits", () => {
  const makeChat = (title: string, fields: Partial<Chat> = {}) =>
    ({ title, status: "waiting", pin_order: 0, children: [], ...fields }) as unknown as Chat;
  const chats = [
    makeChat("done"),
    makeChat("works", { status: "running" }),
    makeChat("second", { pin_order: 2 }),
    makeChat("first", { pin_order: 1, workspace_id: "w" }),
    makeChat("asks a question", { awaits: "answer", pin_order: 3 }),
    makeChat("asks below", { status: "running", children: [makeChat("c", { status: "requires_action" })] as never }),
  ];
  const describeGroups = (grouping: "state" | "workspace") =>
    groupChats(chats, grouping, () => "web").map(({ name, chats }) => `${name}: ${chats.map(({ title }) => title)}`);
  expect(describeGroups("state")).toEqual([
    "Needs you: asks a question,asks below",
    "Pinned: first,second",
    "Working: works",
    "Done: done",
  ]);
  expect(describeGroups("workspace")).toEqual([
    "Without workspace: done,works,second,asks a question,asks below",
    "web: first",
  ]);
});

test("[CB-1] answers to questions are formatted for the model, and a summary resets the context meter", () => {
  const makeQuestion = (header: string) => ({ header, question: "?", options: [] });
  expect(formatAnswers([makeQuestion("a")], ["Other: x"])).toBe("Other: x");
  expect(formatAnswers([makeQuestion("a"), makeQuestion("b")], ["x", "y"])).toBe("1. a: x\n2. b: y");
  const answerMessage = makeMessage(1, "assistant", {
    usage: { input_tokens: 10, cache_read_tokens: 5, output_tokens: 2 },
  });
  const summaryMessage = makeMessage(2, "assistant", {
    content: [{ type: "tool-call", tool_name: "chat_summarized" }],
  });
  expect([
    countContextTokens([answerMessage]),
    countContextTokens([answerMessage, summaryMessage]),
    countContextTokens([]),
  ]).toEqual([17, 0, 0]);
});
