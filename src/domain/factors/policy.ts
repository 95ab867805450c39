// Decides who must have a second factor: by the deployment's setting, or because an administrator required it of the user. Pure.
import type { SecondFactorPolicy } from "#base/config/sign-in-settings.ts";

export type PolicyTarget = {
  readonly login_type: string;
  /** Site roles. */
  readonly roles: readonly string[];
  /** Organization ID to roles there. */
  readonly organizations: Readonly<Record<string, readonly string[]>>;
  readonly second_factor_required: boolean;
};

/** Only users with a password can have one; for others, the external sign-in is responsible. */
export const needsFactor = (policy: SecondFactorPolicy, user: PolicyTarget): boolean => {
  if (user.login_type !== "password") return false;
  if (user.second_factor_required || policy === "everyone") return true;
  if (policy === "nobody") return false;
  return user.roles.length > 0 || Object.values(user.organizations).some((roles) => roles.length > 0);
};
