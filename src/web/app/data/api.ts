// Typed client for the server's API (src/schema/routes.ts), authenticated by the session cookie. Keeps the most recent calls so that every
// page can show them as commands (parts/as-command.tsx).
import { signal } from "@preact/signals";
import type { AnswerOf, BodyOf, CallAt, Method, QueryOf } from "#schema/call-types.ts";
import { formatValidations, Problem, call as send } from "../../browser/api.ts";
import { clearPrefetched } from "../../browser/early.ts";
import { clearUserData } from "../../browser/user-storage.ts";
import { collectNames } from "./names.ts";
import { reloadVisible } from "./resource.ts";
import type { Route, SentRequest } from "./sent.ts";

export { formatValidations, Problem };

type ParamsOf<P extends string> = P extends `${string}:${infer Name}/${infer Rest}`
  ? Name | ParamsOf<`/${Rest}`>
  : P extends `${string}:${infer Name}`
    ? Name
    : never;

/** The call as the server defines it; `never` if the server has no such route. */
type CallOf<R extends Route> = R extends `${infer M extends Method} ${infer P}` ? CallAt<M, P> : never;
type KnownRoute<R extends Route> = [CallOf<R>] extends [never] ? never : R;

type Path<R extends Route> = [ParamsOf<R>] extends [never]
  ? { readonly path?: undefined }
  : { readonly path: Readonly<Record<ParamsOf<R>, string | number>> };
type Body<B> = undefined extends B ? { readonly body?: B } : { readonly body: B };
type Query<Q extends string = string> = {
  readonly query?: Readonly<Partial<Record<Q, string | number | boolean | undefined>>>;
};
type Input<R extends Route> = Path<R> & Body<BodyOf<CallOf<R>>> & Query<QueryOf<CallOf<R>>>;
type CallInput<R extends Route> = Record<never, never> extends Input<R> ? [input?: Input<R>] : [input: Input<R>];

const MAX_RECENT_CALLS = 20;

/** The most recent calls of this page, newest last. */
export const recentCalls = signal<readonly SentRequest[]>([]);

/** Placeholders for secrets in commands, by field. Users may show these commands to others. */
const PLACEHOLDERS: Readonly<Record<string, string>> = {
  api_key: "$API_KEY",
  password: "$PASSWORD",
  oauth2_client_secret: "$CLIENT_SECRET",
  custom_headers: "$HEADERS",
  value: "$VALUE",
};

const redactSecrets = (body: unknown): unknown =>
  typeof body === "object" && body !== null && !Array.isArray(body)
    ? Object.fromEntries(Object.entries(body).map(([name, value]) => [name, (value && PLACEHOLDERS[name]) || value]))
    : body;

/** Matches addresses whose requests contain secrets. They do not appear in the command panel. */
const SECRET_PATH_PATTERN =
  /password|login|passkey|second-factor|factors|confirm|\/first$|invitations\/(look|accept)|\/try\/complete/;

/** Builds the URL of a call below /api/v2: the path with its parameters, and the query. */
export const toAddress = (
  route: string,
  { path, query }: { path?: Readonly<Record<string, string | number>>; query?: Query["query"] } = {},
): string => {
  const filled = route
    .slice(route.indexOf(" ") + 1)
    .replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(String(path?.[name] ?? "")));
  const parameters = Object.entries(query ?? {}).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)]],
  );
  return parameters.length === 0 ? filled : `${filled}?${new URLSearchParams(parameters)}`;
};

/** Sends the call and returns its answer. Throws Problem. If the session has ended, redirects to the sign-in page first. */
export const call = async <R extends Route>(
  route: R & KnownRoute<R>,
  ...[input]: CallInput<R>
): Promise<AnswerOf<CallOf<R>>> => {
  const { path, query, body } = (input ?? {}) as Query & { path?: Record<string, string>; body?: unknown };
  const method = route.slice(0, route.indexOf(" "));
  const address = toAddress(route, { path, query });
  if (!SECRET_PATH_PATTERN.test(address)) {
    const sentCall: SentRequest = {
      method,
      path: address,
      route,
      ...(body === undefined ? {} : { body: redactSecrets(body) }),
    };
    recentCalls.value = [...recentCalls.value, sentCall].slice(-MAX_RECENT_CALLS);
  }
  try {
    const answer = await send<AnswerOf<CallOf<R>>>(method, address, body);
    collectNames(answer);
    return answer;
  } catch (error) {
    if (error instanceof Problem && error.status === 401 && !isOnSignInPage()) {
      if (error.body.kind === "revoked") await clearSessionData().catch(() => undefined);
      goToSignIn();
    }
    // The target was deleted by someone else: reload the page's data.
    if (method !== "GET" && error instanceof Problem && (error.status === 404 || error.status === 410)) reloadVisible();
    // The server also answers 404 for things the user may no longer see.
    if (error instanceof Problem && (error.status === 403 || (method !== "GET" && error.status === 404)))
      for (const act of forbiddenListeners) act();
    throw error;
  }
};

const forbiddenListeners = new Set<() => void>();

/** Calls back when the server has refused a request: the user may have lost a role. */
export const onForbidden = (act: () => void): (() => void) => {
  forbiddenListeners.add(act);
  return () => forbiddenListeners.delete(act);
};

/** Like `call`, but ignores prefetched answers and always asks the server. */
export const callServer = <R extends Route>(
  route: R & KnownRoute<R>,
  ...given: CallInput<R>
): Promise<AnswerOf<CallOf<R>>> => {
  clearPrefetched();
  return call<R>(route, ...given);
};

/** Clears the user's data after the session ended: someone else may sign in next. */
const clearSessionData = async (): Promise<void> => {
  clearUserData();
  const { unsubscribeHere } = await import("./browser-push.ts");
  await unsubscribeHere();
};

const isOnSignInPage = (): boolean => ["/login", "/setup", "/invite"].includes(location.pathname);

/** Redirects to the sign-in page, which returns here afterwards. */
export const goToSignIn = (): void => {
  const current = location.pathname + location.search + location.hash;
  location.assign(`/login?${new URLSearchParams({ redirect: current })}`);
};

/** Returns the error's message for display. */
export const formatError = (error: unknown): string => (error instanceof Error ? error.message : String(error));
