// Uploaded files: one row for each content that a user has sent. The bytes are in the blob store (db/blobs.ts) under the row's hash.
import { and, eq } from "drizzle-orm";
import { union } from "drizzle-orm/sqlite-core";
import { build, eqParam, findBy, insertInto, query } from "../engine/sql.ts";
import { chat_files } from "../schema/chat-files.ts";
import { files, template_versions, templates } from "../schema/templates.ts";

export type FileRow = typeof files.$inferSelect;

export const findFile = findBy(files, files.id);

/** An earlier upload of the same content by the same user. Parameters: {created_by, hash, mimetype}. */
export const findFileByHash = findBy(files, files.created_by, files.hash, files.mimetype);

/** Organizations with versions created from it. Parameters: {file_id}. For `scan`. */
export const listOrganizationsOfFile = query(
  build
    .selectDistinct({ organization_id: template_versions.organization_id })
    .from(template_versions)
    .where(eqParam(template_versions.file_id)),
);

/** Templates with a version created from it, and who may use them. Parameters: {file_id}. */
export const listTemplatesOfFile = query(
  build
    .selectDistinct({
      organization_id: templates.organization_id,
      user_acl: templates.user_acl,
      group_acl: templates.group_acl,
    })
    .from(template_versions)
    .innerJoin(templates, eq(templates.id, template_versions.template_id))
    .where(and(eqParam(template_versions.file_id), eq(templates.deleted, false))),
);

/** Hashes that any row references. */
export const listHashes = query(
  union(build.select({ hash: files.hash }).from(files), build.select({ hash: chat_files.hash }).from(chat_files)),
);

export const insertFile = insertInto(files);
