// Tells the audit log who sent a request. The details are computed only when an entry is written, because most requests change nothing
// (rule AU-3).
import { AppError } from "#base/errors.ts";
import { lazyOrigin, type Origin, withOrigin } from "#base/origin.ts";
import type { Addresses } from "../http/address.ts";
import { findSender, type Identity } from "../http/caller.ts";
import { getPath } from "../http/errors.ts";
import type { Operations } from "../http/operations.ts";
import { getRequestUuid } from "../http/request-id.ts";

/**
 * Runs `work`, which handles this request, on behalf of its sender. Reports of agents are excluded, because they are frequent and never
 * audited; the one change an agent can request (its workspace's deadline) is included.
 */
export const runOnBehalf = <T>(
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
  const caller = findSender(identity);
  const { headers, method, url } = request;
  const status_code = operations.findSuccessStatus(method, getPath(url), caller?.compat ?? false);
  return {
    user_id: caller === undefined ? null : caller.kind === "user" ? caller.user_id : caller.owner_id,
    ip: addresses.of(request) || null,
    user_agent: headers.get("user-agent") ?? "",
    request_id: getRequestUuid(request),
    ...(status_code === undefined ? {} : { status_code }),
    ...(caller?.kind === "agent" ? { note: { agent: caller.agent_name } } : {}),
  };
};
