// Wire shapes of personal skills, which apply to all of a user's chats (facts/chats 5.5).
import { type Static, Type as t } from "@sinclair/typebox";
import { named, namedObject } from "../shape-names.ts";
import { linesText, lineText } from "../text.ts";

const name = lineText({ maxLength: 64, description: "The name of the skill: lower-case words joined by dashes." });
const description = linesText({ maxLength: 1_024, description: "When the model should read the skill." });
const content = t.String({ description: "The text of the skill in Markdown, at most 64 KiB." });

export const UserSkill = namedObject("UserSkill", {
  id: t.String({ format: "uuid" }),
  name: t.String(),
  description: t.String({ description: "When the model should read the skill." }),
  content: t.Optional(
    t.String({ description: "The text of the skill in Markdown. Only returned for a single skill." }),
  ),
  created_at: t.String({ format: "date-time" }),
  updated_at: t.String({ format: "date-time" }),
});
export type UserSkill = Static<typeof UserSkill>;

export const CreateUserSkill = namedObject("CreateUserSkill", { name, description, content });
export type CreateUserSkill = Static<typeof CreateUserSkill>;
export const UpdateUserSkill = named("UpdateUserSkill", t.Partial(CreateUserSkill));
export type UpdateUserSkill = Static<typeof UpdateUserSkill>;
