// Types that map a path to the response and body of its API call (src/schema/routes.ts), so that a wrong path or member is a compiler
// error.
import type { Route } from "./route.ts";
import type { Routes } from "./routes.ts";

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** Resolves one segment of a path: by its name, or as an ID. */
type Step<Node, Segment extends string> = Segment extends keyof Node
  ? Node[Segment]
  : "{}" extends keyof Node
    ? Node["{}"]
    : never;

type Walk<Node, Path extends string> = Path extends `${infer Head}/${infer Rest}`
  ? Walk<Step<Node, Head>, Rest>
  : Step<Node, Path>;

type StripQuery<Path extends string> = Path extends `${infer Before}?${string}` ? Before : Path;

type At<M extends Method, Path extends string> =
  Walk<Routes, StripQuery<Path>> extends infer Node ? (M extends keyof Node ? Node[M] : never) : never;

/** The API call with this method and path below /api/v2, such as `/workspaces/${string}`; `never` if no such call exists. */
export type CallAt<M extends Method, Path extends string> = Path extends `/${infer Below}` ? At<M, Below> : never;

export type AnswerOf<C> = C extends Route<infer Answer, unknown, string> ? Answer : never;
export type BodyOf<C> = C extends Route<unknown, infer Body, string> ? Body : never;
export type QueryOf<C> = C extends { readonly query: infer Query extends string } ? Query : never;
