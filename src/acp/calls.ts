// Maps a coding agent's tool calls to chat tool calls. A call that matches one of Slipway's own tools gets that tool's name and arguments,
// so that rules, hooks, diffs and approvals recognize it. The agent's own tools never get the name of a Slipway tool. Pure.

import { isSameFolder } from "#base/system/same-folder.ts";
import { quoteForShell } from "#base/text/shell-quote.ts";
import type { ToolCallContent, ToolCallUpdate, ToolKind } from "./connection.ts";

/** A call, merged from all of its updates. */
export type AgentToolCall = {
  readonly id: string;
  readonly title: string;
  readonly kind: ToolKind;
  readonly status: "pending" | "in_progress" | "completed" | "failed";
  readonly content: readonly ToolCallContent[];
  readonly paths: readonly string[];
  readonly raw_input: unknown;
  readonly raw_output: unknown;
};

const EMPTY_CALL: Omit<AgentToolCall, "id"> = {
  title: "",
  kind: "other",
  status: "pending",
  content: [],
  paths: [],
  raw_input: undefined,
  raw_output: undefined,
};

/** Maximum size of a call's arguments and of its result. Larger values are not readable, and would slow down the server for everyone. */
const MAX_VALUES = 20_000;
const MAX_CHARACTERS = 1024 * 1024;
/**
 * Maximum number of diffs, texts and files of a call. A call with more shows none of them: an edit with only some of its changes would
 * mislead the person who approves it.
 */
const MAX_ENTRIES = 500;
const TOO_LARGE_NOTICE = { left_out: "This is too large to be shown." };

/** Returns whether a value from the agent is small enough to show, compare and store. */
const isShowable = (value: unknown): boolean => countCharacters(value) !== undefined;

/** Returns the number of characters in a value; undefined if it is too large to be shown. */
const countCharacters = (value: unknown): number | undefined => {
  let [valueCount, characterCount] = [0, 0];
  const pending: unknown[] = [value];
  while (pending.length > 0) {
    const next = pending.pop();
    valueCount += 1;
    if (typeof next === "string") characterCount += next.length;
    if (typeof next === "object" && next !== null) {
      const members = Array.isArray(next) ? next : Object.entries(next).flat();
      if (valueCount + pending.length + members.length > MAX_VALUES) return undefined;
      for (const member of members) pending.push(member);
    }
    if (valueCount > MAX_VALUES || characterCount > MAX_CHARACTERS) return undefined;
  }
  return characterCount;
};

/** Returns the number of characters of a call that are shown and stored. */
export const measureCall = ({ title, content, raw_input, raw_output }: AgentToolCall): number =>
  [title, content, raw_input, raw_output].reduce<number>((sum, one) => sum + (countCharacters(one) ?? 0), 0);

/** Returns whether everything in an update is small enough to be shown. Users are not asked to approve larger updates. */
export const isShowableUpdate = ({ rawInput, content, locations }: ToolCallUpdate): boolean =>
  hasFewEntries(content) && hasFewEntries(locations) && isShowable(pickShown(content)) && isShowable(rawInput);

const hasFewEntries = (list: readonly unknown[] | null | undefined): boolean => (list?.length ?? 0) <= MAX_ENTRIES;

/** Returns the content that is shown: not images, audio and files. */
const pickShown = (content: readonly ToolCallContent[] | null | undefined): readonly ToolCallContent[] =>
  (content ?? []).filter((one) => one.type !== "content" || one.content.type === "text");

const keepIfShowable = (value: unknown): unknown => (isShowable(value) ? value : TOO_LARGE_NOTICE);

/** Returns the call after an update. Fields that the update omits are unchanged. */
export const applyUpdate = (previous: AgentToolCall | undefined, update: ToolCallUpdate): AgentToolCall => {
  const before = previous ?? { id: update.toolCallId, ...EMPTY_CALL };
  const content = update.content && pickShown(update.content);
  if (!hasFewEntries(update.content) || !hasFewEntries(update.locations) || !isShowable(content)) {
    const { content: _, locations: __, ...rest } = update;
    return applyUpdate({ ...before, content: [], paths: [] }, { ...rest, rawInput: TOO_LARGE_NOTICE });
  }
  return {
    id: before.id,
    title: update.title ?? before.title,
    kind: update.kind ?? before.kind,
    status: update.status ?? before.status,
    content: content ?? before.content,
    paths: update.locations?.map(({ path }) => path) ?? before.paths,
    raw_input: isEmpty(update.rawInput) ? before.raw_input : keepIfShowable(update.rawInput),
    raw_output:
      update.rawOutput === undefined || update.rawOutput === null
        ? before.raw_output
        : keepIfShowable(update.rawOutput),
  };
};

/** Returns an update that changes the paths of an edit's files. */
export const replacePaths = (call: AgentToolCall, paths: ReadonlyMap<string, string>): ToolCallUpdate => {
  const movePath = (path: string): string => paths.get(path) ?? path;
  return {
    toolCallId: call.id,
    content: call.content.map((one) =>
      one.type === "diff" ? Object.assign({}, one, { path: movePath(one.path) }) : one,
    ),
    locations: listEditedFiles(call).map((path) => ({ path: movePath(path) })),
  };
};

export const isOver = ({ status }: Pick<AgentToolCall, "status">): boolean =>
  status === "completed" || status === "failed";

/** Returns whether the call can be shown. Agents may announce a call before its arguments are complete. */
export const isDescribed = ({ status, raw_input, content }: AgentToolCall): boolean =>
  status !== "pending" || !isEmpty(raw_input) || content.length > 0;

/** The shell in which an agent runs its commands. */
export type AgentShell = {
  /** Where it starts. Arguments of commands leave this folder out. */
  readonly folder: string;
  /** Returns other folders in which it may be, because of commands of other calls. */
  listKeptFolders(call_id: string, command: string): readonly string[];
};

export type ChatTool = { readonly tool_name: string; readonly args: Readonly<Record<string, unknown>> };

/** Returns the chat's tool and arguments for the call. `shell`: the agent's, if known. */
export const toChatTool = (call: AgentToolCall, shell?: AgentShell): ChatTool => {
  const { kind, title } = call;
  const changes = listDiffs(call);
  // A call of kind execute is a command, even if the agent attaches diffs.
  if (kind === "edit" || (changes.length > 0 && kind !== "execute")) return toEditTool(call, changes);
  if (kind === "execute") return { tool_name: "execute", args: parseCommand(call, shell) };
  const path = findPath(call);
  if (kind === "read" && path !== undefined) return { tool_name: "read_file", args: { path } };
  return { tool_name: `agent_${kind}`, args: { title, ...toObject(call.raw_input) } };
};

/** Returns the call's output so far, as text. `readTerminal` returns the output of a terminal that the call shows. */
export const readOutput = (
  { content, raw_output }: AgentToolCall,
  readTerminal: (id: string) => string | undefined,
): string => {
  const texts = content.flatMap((one) => {
    if (one.type === "terminal") return readTerminal(one.terminalId) ?? [];
    return one.type === "content" && one.content.type === "text" ? [one.content.text] : [];
  });
  if (texts.length > 0) return texts.join("\n");
  const { output, stdout, formatted_output } = toObject(raw_output);
  const printedText = [formatted_output, output, stdout].find((one) => typeof one === "string" && one !== "");
  if (typeof printedText === "string") return printedText;
  return typeof raw_output === "string" ? raw_output : "";
};

/** Returns the result of a finished call. */
export const toResult = (
  call: AgentToolCall,
  output: string,
): { readonly result: Record<string, unknown>; readonly is_error: boolean } => {
  const is_error = call.status === "failed";
  const { tool_name } = toChatTool(call);
  if (is_error) return { result: { error: output === "" ? "The call failed." : output }, is_error };
  if (tool_name === "execute") return { result: { output, ...parseExit(call) }, is_error };
  const ok = tool_name === "edit_files" || tool_name === "write_file" ? { ok: true } : {};
  return { result: { ...ok, ...(output === "" ? {} : { output }) }, is_error };
};

type Change = { readonly path: string; readonly old_text: string; readonly new_text: string };

const listDiffs = ({ content }: AgentToolCall): Change[] =>
  content.flatMap((one) =>
    one.type === "diff" ? [{ path: one.path, old_text: one.oldText ?? "", new_text: one.newText }] : [],
  );

const toEditTool = (call: AgentToolCall, changes: readonly Change[]): ChatTool => {
  const [first] = changes;
  if (first && changes.length === 1 && first.old_text === "") {
    return { tool_name: "write_file", args: { path: first.path, content: first.new_text } };
  }
  if (first) {
    const paths = [...new Set(changes.map(({ path }) => path))];
    const files = paths.map((path) => ({
      path,
      edits: changes.filter((one) => one.path === path).map(({ old_text, new_text }) => ({ old_text, new_text })),
    }));
    return { tool_name: "edit_files", args: { files } };
  }
  const files = listEditedFiles(call).map((path) => ({ path, edits: [] }));
  return { tool_name: "edit_files", args: { files, title: call.title } };
};

/** Returns the files that a call names: its locations, or else the path in its arguments. */
const listEditedFiles = (call: AgentToolCall): readonly string[] =>
  call.paths.length > 0 ? call.paths : [findPath(call)].flatMap((path) => (path === undefined ? [] : [path]));

const findPath = ({ raw_input, paths }: AgentToolCall): string | undefined => {
  const { path, file_path, filePath, abs_path, absolute_path } = toObject(raw_input);
  const argument = [file_path, filePath, abs_path, absolute_path, path].find((one) => typeof one === "string");
  return typeof argument === "string" ? argument : paths[0];
};

/** A shell of the system: one in another folder may be any program. */
const SHELL = /^(?:\/(?:usr\/)?bin\/)?(?:ba|da|z|k)?sh$/;
const SHELL_FLAG = /^-[a-z]*c$/;

/** Returns the command of a call: from its arguments, or from its title if the agent sends no arguments. */
const parseCommand = (call: AgentToolCall, shell: AgentShell | undefined): Readonly<Record<string, unknown>> => {
  const { raw_input, title } = call;
  const { command, cmd, cwd, workdir } = toObject(raw_input);
  const commandValue = command ?? cmd;
  const folder = [workdir, cwd].find((one) => typeof one === "string");
  const text = parseCommandText(commandValue, title);
  const kept = folder === undefined ? (shell?.listKeptFolders(call.id, text) ?? []) : [];
  const directory = folder === undefined || isSameFolder(folder, shell?.folder) ? {} : { workdir: folder };
  return { command: text, ...directory, ...(kept.length > 0 ? { shell_folders: kept } : {}) };
};

const parseCommandText = (commandValue: unknown, title: string): string => {
  if (typeof commandValue === "string") return commandValue;
  if (Array.isArray(commandValue)) {
    const words = commandValue.map(String);
    const [program = "", flag = "", script] = words;
    const isShell = words.length === 3 && SHELL.test(program) && SHELL_FLAG.test(flag) && script !== undefined;
    return isShell ? script : quoteWords(words);
  }
  return title.replace(/^`([\s\S]*)`$/, "$1");
};

/** Quotes the words as a shell command line. */
export const quoteWords = (words: readonly string[]): string => words.map(quoteWord).join(" ");

const quoteWord = (word: string): string => (/^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : quoteForShell(word));

const parseExit = ({ raw_output }: AgentToolCall): Readonly<Record<string, unknown>> => {
  const { exit_code, exitCode, metadata } = toObject(raw_output);
  const code = [exit_code, exitCode, toObject(metadata).exit].find((one) => typeof one === "number");
  return typeof code === "number" ? { success: code === 0, exit_code: code } : { success: true };
};

const toObject = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};

const isEmpty = (value: unknown): boolean =>
  value === undefined || value === null || (typeof value === "object" && Object.keys(value).length === 0);
