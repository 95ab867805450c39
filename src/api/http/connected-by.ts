// Describes who sent a request, for the connection log.
import type { ApiContext } from "../context.ts";
import type { UserCaller } from "./caller.ts";

/** Without a caller, the connection is anonymous. */
export const toConnectedBy = <C extends UserCaller | undefined>(
  { addresses }: Pick<ApiContext, "addresses">,
  caller: C,
  request: Request,
) => ({
  user_id: (caller?.user_id ?? null) as C extends UserCaller ? string : string | null,
  ip: addresses.of(request) || null,
  user_agent: request.headers.get("user-agent") ?? "",
});
