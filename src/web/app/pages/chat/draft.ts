// Drafts of messages, kept by the browser until they are sent, so that they survive a reload or navigation.
import { type Signal, signal } from "@preact/signals";
import type { ChatMessagePart, InputPart } from "#schema/chats/chat-part.ts";
import { loadStoredText, storeText } from "../../data/unsent-text.ts";

export type DraftFile = { readonly id: string; readonly name: string; readonly size: number };
export type DraftReference = Required<Pick<InputPart, "file_name" | "start_line" | "end_line" | "content">>;
export type Draft = {
  readonly text: string;
  readonly files: readonly DraftFile[];
  readonly references: readonly DraftReference[];
};

/** The draft key of a chat that does not exist yet. */
export const NEW_CHAT = "new";
export const NO_DRAFT: Draft = { text: "", files: [], references: [] };
const PREFIX = "slipway.draft.";
const drafts = new Map<string, Signal<Draft>>();

const readDraft = (key: string): Draft => {
  try {
    return { ...NO_DRAFT, ...(JSON.parse(loadStoredText(PREFIX + key) ?? "{}") as Partial<Draft>) };
  } catch {
    return NO_DRAFT;
  }
};

/** Returns the draft of a chat, or of a new chat. */
export const getDraft = (key: string): Signal<Draft> => {
  let draft = drafts.get(key);
  if (!draft) {
    draft = signal(readDraft(key));
    drafts.set(key, draft);
  }
  return draft;
};

export const setDraft = (key: string, draft: Draft): void => {
  getDraft(key).value = draft;
  const isEmpty = draft.text === "" && draft.files.length === 0 && draft.references.length === 0;
  try {
    storeText(PREFIX + key, isEmpty ? undefined : JSON.stringify(draft));
  } catch {
    // If storage is full or forbidden, the draft is lost only on a reload.
  }
};

export const isEmptyDraft = ({ text, files, references }: Draft): boolean =>
  text.trim() === "" && files.length === 0 && references.length === 0;

/** Joins two drafts. */
export const joinDrafts = (first: Draft, second: Draft): Draft => ({
  text: [first.text, second.text].filter((text) => text.trim() !== "").join("\n\n"),
  files: [...first.files, ...second.files],
  references: [...first.references, ...second.references],
});

/** Converts the draft to the API's format. */
export const toContent = ({ text, files, references }: Draft): InputPart[] => [
  ...references.map((one) => ({ type: "file-reference", ...one })),
  ...files.map(({ id }) => ({ type: "file", file_id: id })),
  ...(text.trim() === "" ? [] : [{ type: "text", text: text.trim() }]),
];

const toId = (file_id: ChatMessagePart["file_id"]): string =>
  typeof file_id === "string" ? file_id : (file_id?.uuid ?? "");

/** Converts a sent message for sending again. */
export const toInput = (content: readonly ChatMessagePart[]): InputPart[] =>
  content.flatMap((part): InputPart[] => {
    const { type, text = "", file_name = "", start_line = 0, end_line = 0, content: lines = "" } = part;
    if (type === "text") return [{ type, text }];
    if (type === "file") return [{ type, file_id: toId(part.file_id) }];
    if (type === "file-reference") return [{ type, file_name, start_line, end_line, content: lines }];
    return [];
  });

/** Converts a message to a draft, for example one taken out of the queue. */
export const toDraft = (content: readonly ChatMessagePart[]): Draft => ({
  text: content.map(({ type, text }) => (type === "text" ? (text ?? "") : "")).join("\n"),
  files: content.flatMap((part) =>
    part.type === "file" ? [{ id: toId(part.file_id), name: part.name ?? "file", size: 0 }] : [],
  ),
  references: content.flatMap(({ type, file_name = "", start_line = 0, end_line = 0, content: lines = "" }) =>
    type === "file-reference" ? [{ file_name, start_line, end_line, content: lines }] : [],
  ),
});

/** Uploads a file for a chat of the organization. */
export const upload = async (organization: string, file: File): Promise<DraftFile> => {
  const name = file.name || `pasted.${file.type.split("/")[1] ?? "txt"}`;
  const response = await fetch(`/api/v2/chats/files?organization=${organization}`, {
    method: "POST",
    body: file,
    headers: {
      "content-type": file.type || "application/octet-stream",
      "content-disposition": `attachment; filename*=UTF-8''${encodeURIComponent(name)}`,
    },
  });
  const answer = (await response.json().catch(() => ({}))) as { id?: string; message?: string; detail?: string };
  if (!answer.id)
    throw new Error(`${name}: ${[answer.message, answer.detail].filter(Boolean).join(" ") || response.status}`);
  return { id: answer.id, name, size: file.size };
};
