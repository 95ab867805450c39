// Summarizes a tool call in a few words: verb, target and result. Pure.
import type { ChatMessagePart } from "#schema/chats/chat-part.ts";
import type { IconName } from "../../icons.ts";

type Args = Readonly<Record<string, unknown>>;

/** Returns the arguments received so far. While they stream in, they are an incomplete JSON text. */
export const parseArgs = ({ args, args_delta }: ChatMessagePart): Args => {
  if (typeof args === "object" && args !== null) return args as Args;
  try {
    const parsed = JSON.parse(args_delta ?? "{}") as unknown;
    return typeof parsed === "object" && parsed !== null ? (parsed as Args) : {};
  } catch {
    return parsePartialArgs(args_delta ?? "");
  }
};

/** Returns the string members of an incomplete JSON object. */
const parsePartialArgs = (text: string): Args =>
  Object.fromEntries(
    [...text.matchAll(/"(\w+)":\s*"((?:[^"\\]|\\.)*)/g)].map(([, name = "", value = ""]) => [
      name,
      value.replaceAll("\\n", "\n").replaceAll('\\"', '"'),
    ]),
  );

const toText = (value: unknown): string => (typeof value === "string" ? value : "");

export type ToolDescription = {
  readonly icon: IconName;
  readonly verb: string;
  readonly target: string;
  /** The target is a path or a command. */
  readonly isCode: boolean;
};

const formatPaths = (args: Args): string => {
  const files = Array.isArray(args.files) ? (args.files as { path?: unknown }[]) : [];
  return files.map(({ path }) => toText(path)).join(", ");
};

const TOOLS_WITH_TARGET: Readonly<
  Record<string, (args: Args) => readonly [icon: IconName, verb: string, thing: string]>
> = {
  execute: (args) => ["terminal", "Run", toText(args.command)],
  read_file: (args) => ["file", "Read", toText(args.path)],
  write_file: (args) => ["file", "Write", toText(args.path)],
  edit_files: (args) => ["file", "Edit", formatPaths(args)],
  process_output: (args) => ["terminal", "Output of", toText(args.process_id)],
  process_signal: (args) => ["terminal", `Send ${toText(args.signal) || "signal"} to`, toText(args.process_id)],
  process_list: () => ["terminal", "List processes", ""],
  attach_file: (args) => ["clip", "Attach", toText(args.path)],
  read_skill: (args) => ["list", "Read skill", toText(args.name)],
  read_skill_file: (args) => ["list", "Read skill", `${toText(args.name)}/${toText(args.path)}`],
};

const TOOLS_WITHOUT_TARGET: Readonly<Record<string, (args: Args) => readonly [icon: IconName, words: string]>> = {
  spawn_agent: (args) => ["branch", `Start agent: ${toText(args.title) || toText(args.prompt).slice(0, 80)}`],
  wait_agent: () => ["branch", "Wait for an agent"],
  message_agent: () => ["branch", "Message an agent"],
  interrupt_agent: () => ["branch", "Interrupt an agent"],
  list_agents: () => ["branch", "List agents"],
  list_templates: () => ["layers", "List templates"],
  read_template: () => ["layers", "Read template"],
  create_workspace: (args) => ["box", `Create workspace ${toText(args.name)}`.trim()],
  start_workspace: () => ["box", "Start workspace"],
  stop_workspace: () => ["box", "Stop workspace"],
  propose_plan: () => ["list", "Propose a plan"],
  ask_user_question: () => ["chat", "Ask a question"],
  web_search: (args) => ["globe", `Search the web: ${toText(args.query)}`],
  computer: (args) => ["cols", `Desktop: ${toText(args.action)}`],
};

export const describeTool = (name: string, args: Args): ToolDescription => {
  const withTarget = TOOLS_WITH_TARGET[name]?.(args);
  if (withTarget) return { icon: withTarget[0], verb: withTarget[1], target: withTarget[2], isCode: true };
  const withoutTarget = TOOLS_WITHOUT_TARGET[name]?.(args);
  if (withoutTarget) return { icon: withoutTarget[0], verb: withoutTarget[1], target: "", isCode: false };
  const [first] = Object.values(args).filter((one) => typeof one === "string");
  return { icon: "spark", verb: name.replaceAll("__", ": ").replaceAll("_", " "), target: toText(first), isCode: true };
};

export type ToolOutcome = {
  /** The tool's output; empty if there is nothing to show. */
  readonly output: string;
  readonly error: string;
  readonly diffs: readonly string[];
  readonly took_ms: number | undefined;
  readonly exit_code: number | undefined;
};

export const toOutcome = (name: string, part: ChatMessagePart | undefined): ToolOutcome => {
  const result = (typeof part?.result === "object" && part.result !== null ? part.result : {}) as Args;
  const files = Array.isArray(result.files) ? (result.files as { diff?: unknown }[]) : [];
  const error = toText(result.error) || (part?.is_error ? toText(part.result) || "Failed." : "");
  const output = toText(result.output) || toText(result.content) || toText(result.report);
  const isUnknownTool = !TOOLS_WITH_TARGET[name] && !TOOLS_WITHOUT_TARGET[name] && part !== undefined;
  return {
    output:
      output ||
      (typeof part?.result === "string" ? part.result : isUnknownTool && !error ? formatJson(part?.result) : ""),
    error,
    diffs: name === "edit_files" ? files.map(({ diff }) => toText(diff)) : [],
    took_ms: typeof result.wall_duration_ms === "number" ? result.wall_duration_ms : undefined,
    exit_code: typeof result.exit_code === "number" ? result.exit_code : undefined,
  };
};

const formatJson = (value: unknown): string => (value === undefined ? "" : JSON.stringify(value, null, 2));
