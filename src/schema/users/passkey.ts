// Wire shapes of passkeys. Options and responses of browsers are WebAuthn's own (level 3, the JSON forms), and validated by the library.
import { type Static, Type as t } from "@sinclair/typebox";
import { named } from "../shape-names.ts";
import { lineText } from "../text.ts";

export const Challenge = t.String({
  minLength: 1,
  maxLength: 16384,
  description: "The challenge that the start operation returned. Opaque.",
});
export const PasskeyName = lineText({
  minLength: 1,
  maxLength: 64,
  description: "The name that the owner gave the passkey.",
});

export const Passkey = named(
  "Passkey",
  t.Object({
    id: t.String({ format: "uuid" }),
    name: t.String({ description: "The name that the owner gave the passkey." }),
    created_at: t.String({ format: "date-time" }),
    last_used_at: t.Optional(
      t.String({ format: "date-time", description: "When the passkey was last used; absent until it is used." }),
    ),
    backed_up: t.Boolean({
      description: "Whether the passkey is synced by a service instead of stored on a single device.",
    }),
  }),
);
export type Passkey = Static<typeof Passkey>;

export const PasskeyChallenge = named(
  "PasskeyChallenge",
  t.Object({
    challenge: t.String({ description: "The challenge to send to the operation that completes the process. Opaque." }),
    expires_at: t.String({ format: "date-time", description: "When the challenge stops being accepted." }),
    options: t.Record(t.String(), t.Any(), {
      description:
        "The options for `PublicKeyCredential.parseCreationOptionsFromJSON` or `parseRequestOptionsFromJSON`.",
    }),
  }),
);
export type PasskeyChallenge = Static<typeof PasskeyChallenge>;

/** The result of `PublicKeyCredential.toJSON()`. */
export const CredentialJson = named(
  "CredentialJson",
  t.Object(
    {
      id: t.String({ minLength: 1, maxLength: 2048 }),
      rawId: t.String({ maxLength: 2048 }),
      type: t.String({ maxLength: 64 }),
      response: t.Record(t.String(), t.Any()),
      authenticatorAttachment: t.Optional(t.Union([t.String({ maxLength: 64 }), t.Null()])),
      clientExtensionResults: t.Optional(t.Record(t.String(), t.Any())),
    },
    { description: "The browser's response, as returned by `PublicKeyCredential.toJSON()`." },
  ),
);
export type CredentialJson = Static<typeof CredentialJson>;

export const NewPasskeyRequest = named(
  "NewPasskeyRequest",
  t.Object({ challenge: Challenge, name: PasskeyName, credential: CredentialJson }),
);
export const PasskeyProof = named("PasskeyProof", t.Object({ challenge: Challenge, credential: CredentialJson }));
export const RenamePasskey = named("RenamePasskey", t.Object({ name: PasskeyName }));
export const StartPasskeyLogin = named(
  "StartPasskeyLogin",
  t.Object({
    second_factor: t.Optional(
      t.String({
        maxLength: 8192,
        description:
          "The challenge of a sign-in with a correct password. Only to use the passkey as the second factor.",
      }),
    ),
  }),
);

export const NewPasskey = named(
  "NewPasskey",
  t.Object({
    passkey: Passkey,
    recovery_codes: t.Array(t.String(), {
      description: "The recovery codes. Only set if this is the user's first second factor; returned only once.",
    }),
  }),
);
