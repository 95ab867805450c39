// Uploaded files: one row for each content a user has sent. The bytes are in the blob store (db/blobs.ts) under the row's hash.
import { and, eq, sql } from "drizzle-orm";
import { files } from "./schema/templates.ts";
import { build, insertInto, query } from "./sql.ts";

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

export const insertFile = insertInto(files);
