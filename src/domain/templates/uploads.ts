// Rows of uploaded files: who uploaded which content, and who can read it (rules TP-1 to TP-4).
import { notFound } from "#base/errors.ts";
import { CommitError, type Store } from "#db/engine/store.ts";
import { insertAudit } from "#db/reports/audit/audit.ts";
import {
  type FileRow,
  findFile,
  findFileByHash,
  insertFile,
  listOrganizationsOfFile,
  listTemplatesOfFile,
} from "#db/templates/files.ts";
import { listTemplateAccess } from "#db/templates/templates.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { canManageTemplate, canManageTemplates } from "../access.ts";

/** Returns the ID under which the user has this content; the row is stored. */
export const findOrInsertFile = async (store: Store, row: FileRow): Promise<{ id: string; isNew: boolean }> => {
  const { created_by, hash, mimetype } = row;
  const find = () => store.get(findFileByHash({ created_by, hash, mimetype }));
  const existing = await find();
  if (existing) return { id: existing.id, isNew: false };
  try {
    const { id, created_at: now } = row;
    const base = { now, resource_type: "file", resource_id: id, target: hash } as const;
    const entry = insertAudit({ ...base, action: "create", after: row, status_code: 201 });
    await store.commit([insertFile(row), entry]);
    return { id: row.id, isNew: true };
  } catch (error) {
    if (!(error instanceof CommitError) || error.reason !== "constraint") throw error;
    // The same content was uploaded concurrently.
    const other = await find();
    if (!other) throw error;
    return { id: other.id, isNew: false };
  }
};

/** Returns the upload with this ID if the caller can read it. Rejects with 404 otherwise. */
export const loadReadableFile = async (store: Store, id: string, caller: UserCaller): Promise<FileRow> => {
  const file = await store.get(findFile({ id: id.toLowerCase() }));
  if (!file || !(await canReadFile(store, caller, file))) throw notFound();
  return file;
};

/** Allows the uploader, and template administrators if a version was created from the file. */
export const canReadFile = async (store: Store, caller: UserCaller, file: FileRow): Promise<boolean> => {
  if (file.created_by === caller.user_id || canManageTemplates(caller, "")) return true;
  const organizations = await store.scan(listOrganizationsOfFile({ file_id: file.id }));
  if (organizations.some(({ organization_id }) => canManageTemplates(caller, organization_id))) return true;
  return (await store.scan(listTemplatesOfFile({ file_id: file.id }))).some((one) => canManageTemplate(caller, one));
};

/** Allows everyone who can create versions of some template. */
export const canUpload = async (store: Store, caller: UserCaller): Promise<boolean> =>
  ["", ...Object.keys(caller.organizations)].some((id) => canManageTemplates(caller, id)) ||
  (await store.scan(listTemplateAccess())).some((template) => canManageTemplate(caller, template));
