// The sign-in methods of an account in addition to its password.
import { call } from "../../data/api.ts";
import type { AuthMethods } from "./confirm.tsx";

export const loadFactors = async () => {
  const [factors, passkeys, methods] = await Promise.all([
    call("GET /users/me/factors"),
    call("GET /users/me/passkeys"),
    call("GET /users/authmethods"),
  ]);
  return { factors, passkeys, acceptsPasskeys: methods.passkey.enabled };
};
type FactorState = Awaited<ReturnType<typeof loadFactors>>;

export type FactorProps = {
  readonly state: FactorState;
  readonly authMethods: AuthMethods;
  readonly onChanged: (codes?: readonly string[]) => Promise<void>;
};
