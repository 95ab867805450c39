// Personal skills, which apply to all of a user's chats. Users manage only their own (facts/chats 5.5, rule CX-13).
import { t } from "elysia";
import { toRfc3339 } from "#base/clock.ts";
import { listUserSkills, type UserSkillRow } from "#db/users/skills.ts";
import { userPath } from "#domain/users/find.ts";
import { changeSkill, createSkill, findSkill, findSkillOwner, removeSkill } from "#domain/users/skills.ts";
import { CreateUserSkill, UpdateUserSkill, UserSkill } from "#schema/users/user-skill.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails, NoContent } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const tags = ["Skills"];
const user = true;
const path = t.Object({
  user: userPath.properties.user,
  skill: t.String({ format: "uuid", description: "The ID of the skill." }),
});

const presentSkill = ({ user_id: _, ...row }: UserSkillRow): UserSkill & { content: string } => ({
  ...row,
  created_at: toRfc3339(row.created_at),
  updated_at: toRfc3339(row.updated_at),
});

export const userSkills = (ctx: ApiContext) =>
  routes({ prefix: "/users" })
    .use(callers)
    .get(
      "/:user/skills",
      async ({ caller, params }) => {
        const user_id = await findSkillOwner(ctx, params.user, caller);
        return (await ctx.store.all(listUserSkills({ user_id }))).map((row) => {
          const { content: _, ...summary } = presentSkill(row);
          return summary;
        });
      },
      {
        user,
        params: userPath,
        response: { 200: t.Array(UserSkill), ...fails(401, 403, 404) },
        detail: operation({
          tags,
          operationId: "listSkills",
          summary: "List your skills",
          description: "Returns skills without their text, sorted by name.",
          access: "owner_only",
          scope: "user:read_personal",
        }),
      },
    )
    .post(
      "/:user/skills",
      async ({ caller, params, body, status }) => {
        const user_id = await findSkillOwner(ctx, params.user, caller);
        return status(201, presentSkill(await createSkill(ctx, user_id, body)));
      },
      {
        user,
        params: userPath,
        body: CreateUserSkill,
        response: { 201: UserSkill, ...fails(400, 401, 403, 404, 409) },
        detail: operation({
          tags,
          operationId: "createSkill",
          summary: "Create a skill",
          description: "Creates a skill that all of the caller's chats can use.",
          example: {
            name: "release-notes",
            description: "When writing release notes.",
            content: "Begin with what changes for users.",
          },
          access: "owner_only",
          outlivesGrant: true,
          scope: ["user:update_personal", "workspace:ssh"],
        }),
      },
    )
    .get("/:user/skills/:skill", async ({ caller, params }) => presentSkill(await findSkill(ctx, params, caller)), {
      user,
      params: path,
      response: { 200: UserSkill, ...fails(400, 401, 403, 404) },
      detail: operation({
        tags,
        operationId: "getSkill",
        summary: "Get a skill",
        access: "owner_only",
        scope: "user:read_personal",
      }),
    })
    .patch(
      "/:user/skills/:skill",
      async ({ caller, params, body }) =>
        presentSkill(await changeSkill(ctx, await findSkill(ctx, params, caller), body)),
      {
        user,
        params: path,
        body: UpdateUserSkill,
        response: { 200: UserSkill, ...fails(400, 401, 403, 404, 409) },
        detail: operation({
          tags,
          operationId: "updateSkill",
          summary: "Update a skill",
          audit: target.writes(target.skill),
          example: { description: "When release notes are due." },
          access: "owner_only",
          outlivesGrant: true,
          scope: ["user:update_personal", "workspace:ssh"],
        }),
      },
    )
    .delete(
      "/:user/skills/:skill",
      async ({ caller, params, set }) => {
        await removeSkill(ctx, await findSkill(ctx, params, caller));
        set.status = 204;
      },
      {
        user,
        params: path,
        response: { 204: NoContent, ...fails(400, 401, 403, 404) },
        detail: operation({
          tags,
          operationId: "deleteSkill",
          summary: "Delete a skill",
          audit: target.deletes(target.skill),
          access: "owner_only",
          scope: "user:update_personal",
          outlivesGrant: true,
        }),
      },
    );

/** The same routes under the prefix that older clients use. */
export const experimentalSkills = (ctx: ApiContext) => routes({ prefix: "/api/experimental" }).use(userSkills(ctx));
