// Wire shape of uploads (facts/platform 9.3).
import { type Static, Type as t } from "@sinclair/typebox";
import { namedObject } from "../shape-names.ts";

export const ARCHIVE_TYPES = ["application/x-tar", "application/zip"] as const;
export type ArchiveType = (typeof ARCHIVE_TYPES)[number];

export const UploadedFile = namedObject("UploadedFile", {
  hash: t.String({ format: "uuid", description: "The ID of the file. Named `hash` for older clients." }),
});
export type UploadedFile = Static<typeof UploadedFile>;
