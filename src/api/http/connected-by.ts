// Who connects by a request, as the connection log tells it.
import type { ApiContext } from "../context.ts";
import type { UserCaller } from "./caller.ts";

/** Without a caller it is a stranger. */
export const connectedBy = <C extends UserCaller | undefined>(
  { addresses }: Pick<ApiContext, "addresses">,
  caller: C,
  request: Request,
) => ({
  user_id: (caller?.user_id ?? null) as C extends UserCaller ? string : string | null,
  ip: addresses.of(request) || null,
  user_agent: request.headers.get("user-agent") ?? "",
});
