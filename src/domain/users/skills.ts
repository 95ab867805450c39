// Personal skills, which apply to all of a user's chats. Users manage only their own (facts/chats 5.5, rule CX-13). At most 100 of 64 KiB
// each.
import { conflict, forbidden, invalidField, notFound } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import { CommitError } from "#db/engine/store.ts";
import { insertAudit } from "#db/reports/audit/audit.ts";
import {
  deleteUserSkill,
  findUserSkill,
  insertUserSkill,
  type UserSkillRow,
  updateUserSkill,
} from "#db/users/skills.ts";
import { guardUser } from "#db/users/users.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import type { CreateUserSkill, UpdateUserSkill } from "#schema/users/user-skill.ts";
import type { DomainContext } from "../context.ts";
import { findUserInPath } from "./find.ts";
import { toTakenConflict } from "./name-conflicts.ts";

const MAX_SKILLS = 100;
const MAX_CONTENT_BYTES = 65_536;
const NAME = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;

/** Returns the user in the path, who must be the caller. Rejects with 404 for an invisible user and with 403 for another user. */
export const findSkillOwner = async ({ store }: DomainContext, text: string, caller: UserCaller): Promise<string> => {
  const { id } = await findUserInPath(store, text, caller);
  if (id !== caller.user_id) throw forbidden("You can manage only your own skills.");
  return id;
};

/** Rejects with 404. */
export const findSkill = async (
  ctx: DomainContext,
  { user, skill }: { readonly user: string; readonly skill: string },
  caller: UserCaller,
): Promise<UserSkillRow> => {
  const user_id = await findSkillOwner(ctx, user, caller);
  const row = await ctx.store.get(findUserSkill({ user_id, id: skill.toLowerCase() }));
  if (!row) throw notFound();
  return row;
};

/** Rejects with 400 for invalid values, and with 409 if the name is taken or the user has too many skills. */
export const createSkill = async (
  { store, clock }: DomainContext,
  user_id: string,
  input: CreateUserSkill,
): Promise<UserSkillRow> => {
  const now = clock.now();
  const row: UserSkillRow = { id: uuid(), user_id, ...checkSkill(input), created_at: now, updated_at: now };
  const writes = [
    guardUser({ id: user_id }),
    insertUserSkill(row, MAX_SKILLS),
    toAuditEntry(row, "create", { after: row }, now),
  ];
  await store.commit(writes).catch((error) => {
    if (error instanceof CommitError && error.reason === "stale")
      throw conflict(`You can have at most ${MAX_SKILLS} skills.`);
    throw toTakenConflict(error, { user_skills: "name" });
  });
  return row;
};

/** Rejects with 400, 404 when it no longer exists, or 409 for a name that is taken. */
export const changeSkill = async (
  { store, clock }: DomainContext,
  before: UserSkillRow,
  input: UpdateUserSkill,
): Promise<UserSkillRow> => {
  const now = clock.now();
  const { name, description, content, updated_at } = { ...before, ...checkSkill(input), updated_at: now };
  const after = { ...before, name, description, content, updated_at };
  await store
    .commit([
      updateUserSkill(before.id, { name, description, content, updated_at }, { expect: 1 }),
      toAuditEntry(after, "write", { before, after }, now),
    ])
    .catch((error) => {
      if (error instanceof CommitError && error.reason === "stale") throw notFound();
      throw toTakenConflict(error, { user_skills: "name" });
    });
  return after;
};

/** Rejects with 404 when it no longer exists. */
export const removeSkill = async ({ store, clock }: DomainContext, row: UserSkillRow): Promise<void> => {
  const deletion = deleteUserSkill({ user_id: row.user_id, id: row.id });
  await store.commit([deletion, toAuditEntry(row, "delete", { before: row }, clock.now())]).catch((error) => {
    throw error instanceof CommitError && error.reason === "stale" ? notFound() : error;
  });
};

const checkSkill = <S extends UpdateUserSkill>(given: S): S => {
  const { name, description, content } = given;
  if (name !== undefined && !NAME.test(name))
    throw invalidField("name", "must be lowercase words separated by hyphens");
  if (description !== undefined && description.trim() === "") throw invalidField("description", "must not be empty");
  if (content !== undefined && content.trim() === "") throw invalidField("content", "must not be empty");
  if (content !== undefined && Buffer.byteLength(content) > MAX_CONTENT_BYTES) {
    throw invalidField("content", `must have at most ${MAX_CONTENT_BYTES} bytes`);
  }
  return given;
};

type Change = { readonly before?: UserSkillRow; readonly after?: UserSkillRow };

/** Omits the skill's content, which is private. */
const toAuditEntry = (
  row: UserSkillRow,
  action: "create" | "write" | "delete",
  { before, after }: Change,
  now: number,
) =>
  insertAudit({
    now,
    action,
    resource_type: "user_skill",
    resource_id: row.id,
    target: row.name,
    ...(before ? { before: toAuditedFields(before) } : {}),
    ...(after ? { after: toAuditedFields(after) } : {}),
  });

const toAuditedFields = ({ name, description }: UserSkillRow) => ({ name, description });
