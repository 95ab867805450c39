// Wire shapes of second factors: the second step of a sign-in, enrollment, and reauthentication.
import { type Static, Type as t } from "@sinclair/typebox";
import { Generic } from "../generic.ts";
import { namedObject } from "../shape-names.ts";

export const FACTOR_METHODS = ["totp", "passkey", "recovery_code"] as const;
export type FactorMethod = (typeof FACTOR_METHODS)[number];

const Methods = t.Array(t.String(), { description: `Ways to prove it: ${FACTOR_METHODS.join(", ")}.` });
const ExpiresAt = t.String({ format: "date-time" });

/** An authenticator code or a recovery code, as typed. */
const Code = t.String({
  minLength: 6,
  maxLength: 64,
  description: "The six digits of the authenticator app, or a recovery code.",
});
const Password = t.String({ maxLength: 1000 });
/** Also contains what a provider has reported about the person. */
const Challenge = t.String({ minLength: 1, maxLength: 8192 });

/** The 401 of a sign-in; with `second_factor`, the password was correct. */
export const LoginRefused = namedObject(
  "LoginRefused",
  {
    ...Generic.properties,
    second_factor: t.Optional(
      t.Object(
        {
          challenge: t.String({ description: "For `POST /users/login/second-factor`; opaque." }),
          methods: Methods,
          expires_at: ExpiresAt,
        },
        { description: "Only if the password was correct and a second factor is still required." },
      ),
    ),
  },
  { description: "The email address or password is wrong, the account is suspended, or a second factor is required." },
);
export type LoginRefused = Static<typeof LoginRefused>;

export const SecondFactorLogin = namedObject("SecondFactorLogin", { challenge: Challenge, code: Code });

export const Factors = namedObject("Factors", {
  totp: t.Union([t.Object({ created_at: t.String({ format: "date-time" }) }), t.Null()], {
    description: "The authenticator app; null: none.",
  }),
  passkeys: t.Integer({ description: "How many there are." }),
  recovery_codes_left: t.Integer(),
  required: t.Boolean({ description: "Whether this user must have a second factor." }),
  required_by_administrator: t.Boolean({ description: "Whether it is set for this user alone." }),
});
export type Factors = Static<typeof Factors>;

export const TotpEnrolment = namedObject("TotpEnrolment", {
  enrolment: t.String({ description: "For the operation that confirms it; opaque." }),
  expires_at: ExpiresAt,
  secret: t.String({ description: "Base32, to enter in an app." }),
  uri: t.String({ description: "otpauth://…, for apps." }),
  qr_svg: t.String({ description: "The URI as a QR code: an SVG picture." }),
});
export type TotpEnrolment = Static<typeof TotpEnrolment>;

export const ConfirmTotp = namedObject("ConfirmTotp", { enrolment: Challenge, code: Code });

export const RecoveryCodes = namedObject("RecoveryCodes", {
  recovery_codes: t.Array(t.String(), { description: "Each can be used once. They are shown only this once." }),
});

export const PasswordAndCode = namedObject("PasswordAndCode", { password: Password, code: Code });

export const ConfirmRequest = namedObject("ConfirmRequest", {
  password: Password,
  code: t.Optional(t.String({ ...Code, description: "Required for users with a second factor." })),
});

export const RequireFactor = namedObject("RequireFactor", { required: t.Boolean() });
