// The sign-in methods of an account in addition to its password.
import { call } from "../../data/api.ts";
import type { Proofs } from "./confirm.tsx";

export const readFactors = async () => {
  const [factors, passkeys, ways] = await Promise.all([
    call("GET /users/me/factors"),
    call("GET /users/me/passkeys"),
    call("GET /users/authmethods"),
  ]);
  return { factors, passkeys, takesPasskeys: ways.passkey.enabled };
};
type FactorState = Awaited<ReturnType<typeof readFactors>>;

export type FactorProps = {
  readonly state: FactorState;
  readonly proofs: Proofs;
  readonly changed: (codes?: readonly string[]) => Promise<void>;
};
