// Validates client input to a chat, part by part and field by field, in the order and with the messages of facts/chats 3.3, 3.5, 4.3 and
// 4.12. Pure; files and workspaces are checked where they can be read.
import { type AppError, invalid } from "#base/errors.ts";
import type { DynamicTool } from "#db/chats/chats.ts";
import type { CreateChat } from "#schema/chats/chat.ts";
import type { InputPart, MessagePart } from "#schema/chats/chat-part.ts";
import type { PermissionMode } from "#schema/chats/chat-permissions.ts";
import type { Attachables } from "./attachments.ts";

const MAX_TOOLS = 250;
const MAX_LABELS = 50;
const LABEL_KEY = /^[a-zA-Z0-9][a-zA-Z0-9._/-]*$/;
const EFFORTS = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

const countBytes = (text: string): number => Buffer.byteLength(text);

/** Returns the parts to store. Rejects with 400 and names the part and field. */
export const toContent = (parts: readonly InputPart[], files: Attachables = new Map()): MessagePart[] => {
  if (parts.length === 0) {
    throw invalid("Content is required.", [{ field: "content", detail: "must not be empty" }]);
  }
  return parts.map((part, index) => toPart(part, index, files));
};

const toPart = (part: InputPart, index: number, files: Attachables): MessagePart => {
  const invalidInput = (field: string, problem: string): AppError =>
    invalid(
      "Invalid input part.",
      [{ field: `content.${index}.${field}`, detail: problem }],
      `content[${index}].${field} ${problem}.`,
    );
  switch (part.type.trim().toLowerCase()) {
    case "text": {
      const text = part.text?.trim() ?? "";
      if (text === "") throw invalidInput("text", "must not be empty");
      return { type: "text", text };
    }
    case "file-reference": {
      const { file_name = "", start_line = 0, end_line = 0, content = "" } = part;
      if (file_name.trim() === "") throw invalidInput("file_name", "must not be empty");
      return { type: "file-reference", file_name, start_line, end_line, content };
    }
    case "file": {
      if (!part.file_id) throw invalidInput("file_id", "is required");
      const file_id = part.file_id.toLowerCase();
      const file = files.get(file_id) ?? { problem: "names no file you can attach" };
      if ("problem" in file) throw invalidInput("file_id", file.problem);
      return { type: "file", file_id, name: file.name, media_type: file.media_type };
    }
    default:
      throw invalidInput("type", "must be text, file or file-reference");
  }
};

/** Returns `plan` or null; undefined when the request does not say. */
export const parsePlanMode = (text: string | undefined): "plan" | null | undefined => {
  if (text === undefined) return undefined;
  if (text === "") return null;
  if (text === "plan") return "plan";
  throw wrongField("plan_mode", "must be plan or empty");
};

/** Rejects with 400 when both are given and differ. */
export const checkModes = (mode: PermissionMode | undefined, plan_mode: "plan" | null | undefined): void => {
  if (mode === undefined || plan_mode === undefined || (mode === "plan") === (plan_mode === "plan")) return;
  throw wrongField("plan_mode", `contradicts permission_mode "${mode}": send one of them`);
};

/** An empty text means the default. */
export const parseEffort = (text: string | undefined): string | undefined => {
  if (text === undefined || text === "") return undefined;
  if (EFFORTS.includes(text)) return text;
  throw wrongField("reasoning_effort", `must be one of ${EFFORTS.join(", ")}`);
};

export const parseClientType = (text: string | undefined): "api" | "ui" => {
  if (text === undefined || text === "" || text === "api") return "api";
  if (text === "ui") return "ui";
  throw wrongField("client_type", "must be api or ui");
};

export const parseBehavior = (text: string | undefined): "queue" | "interrupt" => {
  if (text === undefined || text === "" || text === "queue") return "queue";
  if (text === "interrupt") return "interrupt";
  throw invalid("Invalid busy_behavior.", [{ field: "busy_behavior", detail: "must be queue or interrupt" }]);
};

export const toLabels = (labels: Readonly<Record<string, string>>): Record<string, string> => {
  const invalidInput = (detail: string): AppError => invalid("Invalid labels.", [{ field: "labels", detail }]);
  const entries = Object.entries(labels);
  if (entries.length > MAX_LABELS) throw invalidInput(`must be at most ${MAX_LABELS}`);
  for (const [key, value] of entries) {
    if (!LABEL_KEY.test(key) || countBytes(key) > 64) {
      throw invalidInput(
        `the key "${key.slice(0, 64)}" must be 1 to 64 letters, digits, dots, underscores, slashes and dashes`,
      );
    }
    if (countBytes(value) < 1 || countBytes(value) > 256)
      throw invalidInput(`the value of "${key}" must have 1 to 256 bytes`);
  }
  return { ...labels };
};

export const toDynamicTools = (tools: CreateChat["unsafe_dynamic_tools"] = []): DynamicTool[] => {
  if (tools.length > MAX_TOOLS) throw wrongField("unsafe_dynamic_tools", `must be at most ${MAX_TOOLS}`);
  const names = new Set<string>();
  return tools.map(({ name, description = "", input_schema = { type: "object" } }) => {
    if (name.trim() === "") throw wrongField("unsafe_dynamic_tools", "every tool needs a name");
    if (names.has(name)) throw wrongField("unsafe_dynamic_tools", `has the name "${name}" more than once`);
    if (typeof input_schema !== "object" || input_schema === null || Array.isArray(input_schema)) {
      throw wrongField("unsafe_dynamic_tools", `the input_schema of "${name}" must be a JSON object`);
    }
    names.add(name);
    return { name, description, input_schema };
  });
};

/** Allows 1 to 200 characters without surrounding whitespace. */
export const parseTitle = (text: string): string => {
  const title = text.trim();
  if (title === "" || [...title].length > 200) throw wrongField("title", "must have 1 to 200 characters");
  return title;
};

const wrongField = (field: string, detail: string): AppError => invalid("Validation failed.", [{ field, detail }]);
