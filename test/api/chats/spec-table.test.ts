// Checks SPEC.md against the tests that it names, and against the members, statuses and kinds of chats.
import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Chat, ChatMessage, QueuedMessage } from "#schema/chats/chat.ts";
import { ChatContext, ContextResource } from "#schema/chats/chat-context.ts";
import { DiffStatus } from "#schema/chats/chat-diff.ts";
import { CHAT_ERROR_KINDS, ChatError } from "#schema/chats/chat-error.ts";
import type { ChatEvent } from "#schema/chats/chat-event.ts";
import { ChatFile } from "#schema/chats/chat-file.ts";
import { ChatMessagePart, PART_TYPES } from "#schema/chats/chat-part.ts";
import { CHAT_STATUSES } from "#schema/chats/chat-status.ts";

const TESTS = join(import.meta.dir, "../..");
const page = readFileSync(join(import.meta.dir, "SPEC.md"), "utf8");

/** Returns each test that a page names, with its rules, as in `story.test.ts CH-20, CH-22; tools/loop.test.ts TO-14`. */
const findNamedTests = (markdown: string): { file: string; rule: string }[] =>
  [...markdown.matchAll(/([\w/-]+\.test\.ts)((?:,? [A-Z]{2}-\d+)+)/g)].flatMap(([, file = "", rules = ""]) =>
    (rules.match(/[A-Z]{2}-\d+/g) ?? []).map((rule) => ({
      file: file.includes("/") ? file : `api/chats/${file}`,
      rule,
    })),
  );

test("[RP-10] every test that SPEC.md names exists, and a title in it cites the rule", () => {
  const rows = page.split("\n").filter((line) => /^\| (?!row|---)/.test(line));
  expect(rows.filter((row) => findNamedTests(row).length === 0)).toEqual([]);
  const texts = new Map<string, string>();
  const missing = findNamedTests(page).filter(({ file, rule }) => {
    const path = join(TESTS, file);
    if (!texts.has(path)) texts.set(path, existsSync(path) ? readFileSync(path, "utf8") : "");
    const titles = texts.get(path)?.match(/["'`](?:\[[A-Z]{2,4}-\d+\]\s*)+/g) ?? [];
    return !titles.some((title) => title.includes(`[${rule}]`));
  });
  expect(missing).toEqual([]);
  expect(findNamedTests("| a | x.test.ts CH-1, CH-2; b/y.test.ts TO-3 |")).toEqual([
    { file: "api/chats/x.test.ts", rule: "CH-1" },
    { file: "api/chats/x.test.ts", rule: "CH-2" },
    { file: "b/y.test.ts", rule: "TO-3" },
  ]);
});

test("[RP-10] SPEC.md names every member, status and kind of chats", () => {
  const shapes = [Chat, ChatContext, ContextResource, DiffStatus, ChatFile, ChatError];
  const messages = [ChatMessage, QueuedMessage, ChatMessagePart];
  const events: Record<ChatEvent["type"], true> = {
    message: true,
    message_part: true,
    queue_update: true,
    status: true,
    error: true,
    retry: true,
    action_required: true,
    preview_reset: true,
    history_reset: true,
  };
  const names = [
    ...[...shapes, ...messages].flatMap(({ properties }) => Object.keys(properties)),
    ...[...CHAT_STATUSES, ...CHAT_ERROR_KINDS, ...PART_TYPES, ...Object.keys(events)],
  ];
  expect([...new Set(names)].filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
});
