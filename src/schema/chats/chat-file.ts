// Wire shapes of files uploaded to chats (specification "Chat file", facts/chats 3.4 and 4.14).
import { type Static, Type as t } from "@sinclair/typebox";
import { namedObject } from "../shape-names.ts";

/** All allowed upload types. */
export const CHAT_FILE_TYPES = [
  "application/json",
  "application/pdf",
  "image/gif",
  "image/jpeg",
  "image/png",
  "image/webp",
  "text/csv",
  "text/markdown",
  "text/plain",
] as const;
export type ChatFileType = (typeof CHAT_FILE_TYPES)[number];

export const ChatFile = namedObject("ChatFile", {
  id: t.String({ format: "uuid" }),
  organization_id: t.String({ format: "uuid" }),
  owner_id: t.String({ format: "uuid" }),
  created_at: t.String({ format: "date-time" }),
  mime_type: t.String({ description: "The media type of the file, such as `image/png`." }),
  name: t.String(),
  size_bytes: t.Integer({ description: "The size of the file, in bytes." }),
});
export type ChatFile = Static<typeof ChatFile>;

export const UploadedChatFile = namedObject("UploadedChatFile", {
  id: t.String({ format: "uuid", description: "The ID of the file. Send it as `file_id` of a message part." }),
});
