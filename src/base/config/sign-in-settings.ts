// Settings of signing in beyond the password.
import { choice } from "./kinds.ts";
import { setting } from "./setting.ts";

export const SECOND_FACTOR_POLICIES = ["nobody", "administrators", "everyone"] as const;
export type SecondFactorPolicy = (typeof SECOND_FACTOR_POLICIES)[number];

export const SIGN_IN_SETTINGS = {
  require_second_factor: setting(choice(...SECOND_FACTOR_POLICIES), "nobody", {
    group: "Signing in",
    help: "Who needs a second factor beside the password: nobody, everybody with a role of the site or of an organization, or everyone. People who have none yet can only enrol one until they have.",
  }),
} as const;
