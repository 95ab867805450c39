// Says for whom the work of a request is done, for the audit log. Made of the request only when an entry is written: most requests
// change nothing (rule AU-3).
import type { AnyElysia } from "elysia";
import { AppError } from "#base/errors.ts";
import { lazyOrigin, type Origin, withOrigin } from "#base/origin.ts";
import type { Addresses } from "../http/address.ts";
import { type Identity, somebodyIn } from "../http/caller.ts";
import { pathOf } from "../http/errors.ts";
import { uuidOf } from "../http/request-id.ts";

/** Method and path -> the status that success is answered with. */
export type Statuses = (method: string, path: string, compat: boolean) => number | undefined;

/**
 * Runs `work`, the answer to this request, on behalf of whoever has sent it. What agents report is left out, but for the one thing
 * that they may ask for (the deadline of their workspace): it is never audited and comes often.
 */
export const onBehalf = <T>(
  request: Request,
  identity: Identity,
  { addresses, statuses }: { readonly addresses: Addresses; readonly statuses: Statuses },
  work: () => T,
): T => {
  const isAgent = !(identity instanceof AppError) && identity.kind === "agent";
  if (isAgent && request.method !== "PUT") return work();
  return withOrigin(
    lazyOrigin(() => originOf(request, identity, addresses, statuses)),
    work,
  );
};

const originOf = (request: Request, identity: Identity, addresses: Addresses, statuses: Statuses): Origin => {
  const caller = somebodyIn(identity);
  const { headers, method, url } = request;
  const status_code = statuses(method, pathOf(url), caller?.compat ?? false);
  return {
    user_id: caller === undefined ? null : caller.kind === "user" ? caller.user_id : caller.owner_id,
    ip: addresses.of(request) || null,
    user_agent: headers.get("user-agent") ?? "",
    request_id: uuidOf(request),
    ...(status_code === undefined ? {} : { status_code }),
    ...(caller?.kind === "agent" ? { note: { agent: caller.agent_name } } : {}),
  };
};

/** Read from the answers that routes promise: the lowest of success, and for clients of the upstream kind the highest. */
export const statusesOf = (app: AnyElysia): Statuses => {
  const known = app.routes.flatMap(({ method, path, hooks }) => {
    const promised = Object.keys((hooks as { response?: object }).response ?? {})
      .map(Number)
      .filter((status) => status >= 200 && status < 400)
      .sort((a, b) => a - b);
    return promised.length === 0 ? [] : [{ method, segments: path.split("/"), promised }];
  });
  return (method, path, compat) => {
    const segments = path.split("/");
    const found = known
      .filter((one) => one.method === method && fits(one.segments, segments))
      .sort((a, b) => variables(a.segments) - variables(b.segments))[0];
    return compat ? found?.promised.at(-1) : found?.promised[0];
  };
};

/** Whether a path is one of this route, both as segments; variables of the route begin with `:`. */
export const fits = (pattern: readonly string[], path: readonly string[]): boolean =>
  pattern.length === path.length && pattern.every((part, i) => part.startsWith(":") || part === path[i]);

export const variables = (pattern: readonly string[]): number => pattern.filter((part) => part.startsWith(":")).length;
