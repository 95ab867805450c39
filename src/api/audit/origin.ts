// Says for whom the work of a request is done, for the audit log. Made of the request only when an entry is written: most requests
// change nothing (rule AU-3).
import { AppError } from "#base/errors.ts";
import { lazyOrigin, type Origin, withOrigin } from "#base/origin.ts";
import type { Addresses } from "../http/address.ts";
import { type Identity, somebodyIn } from "../http/caller.ts";
import { getPath } from "../http/errors.ts";
import type { Operations } from "../http/operations.ts";
import { getRequestUuid } from "../http/request-id.ts";

/**
 * Runs `work`, the answer to this request, on behalf of anyone who has sent it. What agents report is left out, but for the one thing
 * that they may ask for (the deadline of their workspace): it is never audited and comes often.
 */
export const onBehalf = <T>(
  request: Request,
  identity: Identity,
  { addresses, operations }: { readonly addresses: Addresses; readonly operations: Operations },
  work: () => T,
): T => {
  const isAgent = !(identity instanceof AppError) && identity.kind === "agent";
  if (isAgent && request.method !== "PUT") return work();
  return withOrigin(
    lazyOrigin(() => toOrigin(request, identity, addresses, operations)),
    work,
  );
};

const toOrigin = (request: Request, identity: Identity, addresses: Addresses, operations: Operations): Origin => {
  const caller = somebodyIn(identity);
  const { headers, method, url } = request;
  const status_code = operations.status(method, getPath(url), caller?.compat ?? false);
  return {
    user_id: caller === undefined ? null : caller.kind === "user" ? caller.user_id : caller.owner_id,
    ip: addresses.of(request) || null,
    user_agent: headers.get("user-agent") ?? "",
    request_id: getRequestUuid(request),
    ...(status_code === undefined ? {} : { status_code }),
    ...(caller?.kind === "agent" ? { note: { agent: caller.agent_name } } : {}),
  };
};
