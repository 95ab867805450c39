// Sign-in settings other than the password.
import { choice } from "./kinds.ts";
import { setting } from "./setting.ts";

export const SECOND_FACTOR_POLICIES = ["nobody", "administrators", "everyone"] as const;
export type SecondFactorPolicy = (typeof SECOND_FACTOR_POLICIES)[number];

export const SIGN_IN_SETTINGS = {
  require_second_factor: setting(choice(...SECOND_FACTOR_POLICIES), "nobody", {
    group: "Signing in",
    help: "Who needs a second factor in addition to the password: nobody, administrators (everyone with a role in the deployment or an organization), or everyone. People without one can only enroll one after they sign in.",
  }),
} as const;
