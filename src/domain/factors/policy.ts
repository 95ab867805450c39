// Who must have a second factor: by the setting of the deployment, or because an administrator said so of one user. Pure.
import type { SecondFactorPolicy } from "#base/config/sign-in-settings.ts";

export type PolicyTarget = {
  readonly login_type: string;
  /** Site roles. */
  readonly roles: readonly string[];
  /** Organization id -> roles there. */
  readonly organizations: Readonly<Record<string, readonly string[]>>;
  readonly second_factor_required: boolean;
};

/** Only people with a password can have one; anyone who signs in elsewhere is asked there. */
export const needsFactor = (policy: SecondFactorPolicy, user: PolicyTarget): boolean => {
  if (user.login_type !== "password") return false;
  if (user.second_factor_required || policy === "everyone") return true;
  if (policy === "nobody") return false;
  return user.roles.length > 0 || Object.values(user.organizations).some((roles) => roles.length > 0);
};
