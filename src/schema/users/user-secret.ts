// Wire shapes of user secrets, which workspaces get as environment variables or files. A value is never returned.
import { type Static, Type as t } from "@sinclair/typebox";
import { named } from "../shape-names.ts";
import { strictObject } from "../strict.ts";
import { linesText, lineText } from "../text.ts";

/** Maximum bytes of a value: tools mask secrets up to this length in their results (src/tools/mask.ts). */
export const SECRET_BYTES = 16_384;

const description = linesText({ maxLength: 1_024, description: "What the secret is for; may be empty." });
const ENV_NAME = "The environment variable that contains the secret in the user's workspaces; empty if not set.";
const FILE_PATH =
  "The file that contains the secret in the user's workspaces: an absolute path, or a path below `~/`. Empty if not set.";
const env_name = t.String({
  maxLength: 128,
  pattern: "^$|^[A-Za-z_][A-Za-z0-9_]*$",
  description: ENV_NAME,
});
const file_path = lineText({
  maxLength: 1_024,
  description: FILE_PATH,
});
const value = t.String({
  minLength: 1,
  maxLength: SECRET_BYTES,
  description: "The value of the secret, at most 16 KiB.",
});

export const UserSecret = named(
  "UserSecret",
  t.Object({
    id: t.String({ format: "uuid" }),
    name: t.String(),
    description: t.String(),
    env_name: t.String({ description: ENV_NAME }),
    file_path: t.String({ description: FILE_PATH }),
    created_at: t.String({ format: "date-time" }),
    updated_at: t.String({ format: "date-time" }),
  }),
);
export type UserSecret = Static<typeof UserSecret>;

export const CreateUserSecret = named(
  "CreateUserSecretRequest",
  strictObject({
    name: t.String({
      maxLength: 64,
      pattern: "^[A-Za-z0-9][A-Za-z0-9._-]*$",
      description:
        "The name of the secret: letters, digits, dots, underscores and dashes. Unique among the user's secrets.",
    }),
    value,
    description: t.Optional(description),
    env_name: t.Optional(env_name),
    file_path: t.Optional(file_path),
  }),
);
export type CreateUserSecret = Static<typeof CreateUserSecret>;

export const UpdateUserSecret = named(
  "UpdateUserSecretRequest",
  strictObject({
    value: t.Optional(value),
    description: t.Optional(description),
    env_name: t.Optional(env_name),
    file_path: t.Optional(file_path),
  }),
);
export type UpdateUserSecret = Static<typeof UpdateUserSecret>;
