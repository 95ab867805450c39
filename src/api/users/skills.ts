// Personal skills: what a person has written for all of their chats, each for themselves (facts/chats 5.5, rule CX-13). At most 100 of them,
// 64 KiB each.
import { Elysia, t } from "elysia";
import { rfc3339 } from "#base/clock.ts";
import { conflict, forbidden, invalidField, notFound } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import { CommitError } from "#db/engine/store.ts";
import { audited } from "#db/reports/audit/audit.ts";
import {
  deleteUserSkill,
  findUserSkill,
  insertUserSkill,
  listUserSkills,
  type UserSkillRow,
  updateUserSkill,
} from "#db/users/skills.ts";
import { takenOr } from "#domain/users/taken.ts";
import { userAt, userPath } from "#domain/users/user.ts";
import { CreateUserSkill, UpdateUserSkill, UserSkill } from "#schema/user-skill.ts";
import type { ApiContext } from "../context.ts";
import { callers, type UserCaller } from "../http/caller.ts";
import { fails, NoContent } from "../http/responses.ts";

const tags = ["Skills"];
const user = true;
const path = t.Object({
  user: userPath.properties.user,
  skill: t.String({ format: "uuid", description: "Skill id." }),
});
const MOST = 100;
const BYTES = 65_536;
const NAME = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;

const show = ({ user_id: _, ...row }: UserSkillRow): UserSkill & { content: string } => ({
  ...row,
  created_at: rfc3339(row.created_at),
  updated_at: rfc3339(row.updated_at),
});

const checked = <S extends UpdateUserSkill>(given: S): S => {
  const { name, description, content } = given;
  if (name !== undefined && !NAME.test(name)) throw invalidField("name", "must be lower-case words joined by dashes");
  if (description !== undefined && description.trim() === "") throw invalidField("description", "must not be empty");
  if (content !== undefined && content.trim() === "") throw invalidField("content", "must not be empty");
  if (content !== undefined && Buffer.byteLength(content) > BYTES) {
    throw invalidField("content", `must have at most ${BYTES} bytes`);
  }
  return given;
};

type Change = { readonly before?: UserSkillRow; readonly after?: UserSkillRow };

/** The text itself is nobody else's. */
const told = (row: UserSkillRow, action: "create" | "write" | "delete", { before, after }: Change, now: number) =>
  audited({
    ...{ now, action, resource_type: "user_skill", resource_id: row.id, target: row.name },
    ...(before ? { before: named(before) } : {}),
    ...(after ? { after: named(after) } : {}),
  });

const named = ({ name, description }: UserSkillRow) => ({ name, description });

/** 404 for a person one cannot see, 403 for another. */
const own = async ({ store }: ApiContext, text: string, caller: UserCaller): Promise<string> => {
  const { id } = await userAt(store, text, caller);
  if (id !== caller.user_id) throw forbidden("Each writes their own skills.");
  return id;
};

const skillAt = async (ctx: ApiContext, params: { user: string; skill: string }, caller: UserCaller) => {
  const user_id = await own(ctx, params.user, caller);
  const row = await ctx.store.get(findUserSkill({ user_id, id: params.skill.toLowerCase() }));
  if (!row) throw notFound();
  return row;
};

export const userSkills = (ctx: ApiContext) =>
  new Elysia({ prefix: "/users" })
    .use(callers)
    .get(
      "/:user/skills",
      async ({ caller, params }) => {
        const rows = await ctx.store.all(listUserSkills({ user_id: await own(ctx, params.user, caller) }));
        return rows.map((row) => {
          const { content: _, ...shown } = show(row);
          return shown;
        });
      },
      {
        ...{ user, params: userPath },
        response: { 200: t.Array(UserSkill), ...fails(401, 403, 404) },
        detail: { tags, summary: "List one's skills", description: "By name, without their texts." },
      },
    )
    .post(
      "/:user/skills",
      async ({ caller, params, body, status }) => {
        const user_id = await own(ctx, params.user, caller);
        const now = ctx.clock.now();
        const row: UserSkillRow = { id: uuid(), user_id, ...checked(body), created_at: now, updated_at: now };
        await ctx.store
          .commit([insertUserSkill(row, MOST), told(row, "create", { after: row }, now)])
          .catch((error) => {
            if (error instanceof CommitError && error.reason === "stale")
              throw conflict(`${MOST} skills are the most.`);
            throw takenOr(error, { user_skills: "name" });
          });
        return status(201, show(row));
      },
      {
        ...{ user, params: userPath, body: CreateUserSkill },
        response: { 201: UserSkill, ...fails(400, 401, 403, 404, 409) },
        detail: { tags, summary: "Write a skill", description: "All chats of the caller can read it from now on." },
      },
    )
    .get("/:user/skills/:skill", async ({ caller, params }) => show(await skillAt(ctx, params, caller)), {
      ...{ user, params: path },
      response: { 200: UserSkill, ...fails(400, 401, 403, 404) },
      detail: { tags, summary: "Get one of one's skills" },
    })
    .patch(
      "/:user/skills/:skill",
      async ({ caller, params, body }) => {
        const before = await skillAt(ctx, params, caller);
        const now = ctx.clock.now();
        const { name, description, content, updated_at } = { ...before, ...checked(body), updated_at: now };
        const after = { ...before, name, description, content, updated_at };
        await ctx.store
          .commit([
            updateUserSkill(before.id, { name, description, content, updated_at }, { expect: 1 }),
            told(after, "write", { before, after }, now),
          ])
          .catch((error) => {
            if (error instanceof CommitError && error.reason === "stale") throw notFound();
            throw takenOr(error, { user_skills: "name" });
          });
        return show(after);
      },
      {
        ...{ user, params: path, body: UpdateUserSkill },
        response: { 200: UserSkill, ...fails(400, 401, 403, 404, 409) },
        detail: { tags, summary: "Change one of one's skills" },
      },
    )
    .delete(
      "/:user/skills/:skill",
      async ({ caller, params, set }) => {
        const row = await skillAt(ctx, params, caller);
        const gone = deleteUserSkill({ user_id: row.user_id, id: row.id });
        await ctx.store.commit([gone, told(row, "delete", { before: row }, ctx.clock.now())]).catch((error) => {
          throw error instanceof CommitError && error.reason === "stale" ? notFound() : error;
        });
        set.status = 204;
      },
      {
        ...{ user, params: path },
        response: { 204: NoContent, ...fails(400, 401, 403, 404) },
        detail: { tags, summary: "Delete one of one's skills" },
      },
    );

/** Where other clients look for it. */
export const experimentalSkills = (ctx: ApiContext) => new Elysia({ prefix: "/api/experimental" }).use(userSkills(ctx));
