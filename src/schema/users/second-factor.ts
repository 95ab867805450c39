// Wire shapes of second factors: the second step of a sign-in, enrollment, and reauthentication.
import { type Static, Type as t } from "@sinclair/typebox";
import { Generic } from "../generic.ts";
import { namedObject } from "../shape-names.ts";

export const FACTOR_METHODS = ["totp", "passkey", "recovery_code"] as const;
export type FactorMethod = (typeof FACTOR_METHODS)[number];

const Methods = t.Array(t.String(), { description: `The available methods: ${FACTOR_METHODS.join(", ")}.` });
const ExpiresAt = t.String({
  format: "date-time",
  description: "When the challenge or enrollment stops being accepted.",
});

/** An authenticator code or a recovery code, as typed. */
const Code = t.String({
  minLength: 6,
  maxLength: 64,
  description: "A six-digit code from the authenticator app, or a recovery code.",
});
const Password = t.String({ maxLength: 1000, description: "Your current password." });
/** An encrypted state of a sign-in, which also contains the claims of an identity provider. */
const sealed = (description: string) => t.String({ minLength: 1, maxLength: 8192, description });

/** The 401 of a sign-in; with `second_factor`, the password was correct. */
export const LoginRefused = namedObject(
  "LoginRefused",
  {
    ...Generic.properties,
    second_factor: t.Optional(
      t.Object(
        {
          challenge: t.String({ description: "The challenge to send to `POST /users/login/second-factor`. Opaque." }),
          methods: Methods,
          expires_at: ExpiresAt,
        },
        { description: "Only set if the password was correct and a second factor is still required." },
      ),
    ),
  },
  { description: "The email address or password is wrong, the account is suspended, or a second factor is required." },
);
export type LoginRefused = Static<typeof LoginRefused>;

export const SecondFactorLogin = namedObject("SecondFactorLogin", {
  challenge: sealed("The challenge in `second_factor` of the refused sign-in."),
  code: Code,
});

export const Factors = namedObject("Factors", {
  totp: t.Union(
    [t.Object({ created_at: t.String({ format: "date-time", description: "When the app was enrolled." }) }), t.Null()],
    {
      description: "The authenticator app; null if none is enrolled.",
    },
  ),
  passkeys: t.Integer({ description: "The number of passkeys." }),
  recovery_codes_left: t.Integer({ description: "The number of recovery codes that were not used yet." }),
  required: t.Boolean({ description: "Whether the user must have a second factor." }),
  required_by_administrator: t.Boolean({
    description: "Whether an administrator requires it for this user individually.",
  }),
});
export type Factors = Static<typeof Factors>;

export const TotpEnrolment = namedObject("TotpEnrolment", {
  enrolment: t.String({ description: "The enrollment to send to the operation that confirms it. Opaque." }),
  expires_at: ExpiresAt,
  secret: t.String({ description: "The secret in Base32, to enter in an authenticator app." }),
  uri: t.String({ description: "The `otpauth://` URI for authenticator apps." }),
  qr_svg: t.String({ description: "The URI as a QR code, in SVG." }),
});
export type TotpEnrolment = Static<typeof TotpEnrolment>;

export const ConfirmTotp = namedObject("ConfirmTotp", {
  enrolment: sealed("The `enrolment` that the start operation returned."),
  code: Code,
});

export const RecoveryCodes = namedObject("RecoveryCodes", {
  recovery_codes: t.Array(t.String(), {
    description: "The recovery codes. Each works once, and they are returned only once.",
  }),
});

export const PasswordAndCode = namedObject("PasswordAndCode", { password: Password, code: Code });

export const ConfirmRequest = namedObject("ConfirmRequest", {
  password: Password,
  code: t.Optional(
    t.String({
      ...Code,
      description: "A code from the authenticator app, or a recovery code. Needed if the user has a second factor.",
    }),
  ),
});

export const RequireFactor = namedObject("RequireFactor", {
  required: t.Boolean({ description: "Whether the user must have a second factor." }),
});
