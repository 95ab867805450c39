// Uploaded files: one row for each content a user has sent. The bytes are in the blob store (db/blobs.ts) under the row's hash.
import { and, eq, sql } from "drizzle-orm";
import { union } from "drizzle-orm/sqlite-core";
import { build, insertInto, query } from "../engine/sql.ts";
import { chat_files } from "../schema/chat-files.ts";
import { files, template_versions } from "../schema/templates.ts";

export type FileRow = typeof files.$inferSelect;

export const findFile = query(
  build
    .select()
    .from(files)
    .where(eq(files.id, sql.placeholder("id"))),
);

/** The same content sent before by the same user: {created_by, hash, mimetype}. */
export const findFileByHash = query(
  build
    .select()
    .from(files)
    .where(
      and(
        eq(files.created_by, sql.placeholder("created_by")),
        eq(files.hash, sql.placeholder("hash")),
        eq(files.mimetype, sql.placeholder("mimetype")),
      ),
    ),
);

/** Where versions were made of it: {file_id}. For `scan`. */
export const listOrganizationsOfFile = query(
  build
    .selectDistinct({ organization_id: template_versions.organization_id })
    .from(template_versions)
    .where(eq(template_versions.file_id, sql.placeholder("file_id"))),
);

/** The hashes that some row names. */
export const listHashes = query(
  union(build.select({ hash: files.hash }).from(files), build.select({ hash: chat_files.hash }).from(chat_files)),
);

export const insertFile = insertInto(files);
