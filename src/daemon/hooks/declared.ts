// Loads the hooks that a workspace declares in `.slipway/hooks.json` of its folder (facts/agents A37, docs/hooks.md). The file is read on
// each request and parsed strictly, because a hook with an ignored field might not be called.
import { realpath } from "node:fs/promises";
import { join } from "node:path";
import { type Static, Type as t } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { sha256 } from "#base/ids.ts";
import { HOOK_EVENTS } from "#schema/chats/hook-event.ts";
import { strictObject } from "#schema/strict.ts";
import { readContextFile } from "../context/file.ts";

/** Relative to the workspace's folder. */
export const HOOKS_FILE = join(".slipway", "hooks.json");
const MAX_FILE_BYTES = 64 * 1024;
const MAX_HOOKS = 16;
/** Maximum and default timeout of a hook, in seconds. */
const MAX_SECONDS = 5;

const HookEntry = strictObject({
  name: t.String({ minLength: 1, maxLength: 64 }),
  event: t.Union(HOOK_EVENTS.map((event) => t.Literal(event))),
  matcher: t.Optional(t.String({ minLength: 1, maxLength: 256 })),
  command: t.String({ minLength: 1, maxLength: 4_096 }),
  timeout: t.Optional(t.Number({ exclusiveMinimum: 0, maximum: MAX_SECONDS })),
});
const HooksFileSchema = strictObject({ version: t.Literal(1), hooks: t.Array(HookEntry, { maxItems: MAX_HOOKS }) });

export type WorkspaceHook = {
  readonly name: string;
  readonly event: string;
  readonly matcher: string;
  readonly command: string;
  readonly timeout_ms: number;
};
export type Declaration = {
  readonly revision: string;
  readonly error: string;
  readonly hooks: readonly WorkspaceHook[];
};

const NO_HOOKS: Declaration = { revision: "", error: "", hooks: [] };

/** `directory`: the workspace's folder. Never rejects: `error` says what is wrong with the file. */
export const readDeclaration = async (directory: string): Promise<Declaration> => {
  const root = await realpath(directory).catch(() => undefined);
  if (root === undefined) return NO_HOOKS;
  const file = await readContextFile(join(root, HOOKS_FILE), root, MAX_FILE_BYTES);
  if (!file) return NO_HOOKS;
  if (file.status !== "ok") return { revision: sha256(file.error), error: `${HOOKS_FILE} ${file.error}.`, hooks: [] };
  const text = new TextDecoder().decode(file.bytes);
  const result = parseDeclaration(text);
  const revision = sha256(text);
  if (typeof result === "string") return { revision, error: `${HOOKS_FILE} ${result}.`, hooks: [] };
  return { revision, error: "", hooks: result };
};

/** Returns the hooks in the text, or what is wrong with it. */
export const parseDeclaration = (text: string): WorkspaceHook[] | string => {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return "is not JSON";
  }
  if (!Value.Check(HooksFileSchema, value)) {
    const [first] = Value.Errors(HooksFileSchema, value);
    return `is not as it should be at ${first?.path || "/"}: ${first?.message ?? "unknown"}`;
  }
  const hooks = value.hooks.map(toHook);
  const duplicate = hooks.find((one, index) => hooks.findIndex(({ name }) => name === one.name) < index);
  if (duplicate) return `has two hooks named ${duplicate.name}`;
  const misplaced = value.hooks.find(({ event, matcher }) => matcher !== undefined && !TOOL_EVENTS.has(event));
  return misplaced ? `has a matcher at ${misplaced.name}, whose event is about no tool` : hooks;
};

const TOOL_EVENTS: ReadonlySet<string> = new Set(["pre_tool_use", "post_tool_use"]);

const toHook = ({ timeout = MAX_SECONDS, matcher = "*", ...one }: Static<typeof HookEntry>): WorkspaceHook => ({
  ...one,
  matcher,
  timeout_ms: Math.ceil(timeout * 1_000),
});
