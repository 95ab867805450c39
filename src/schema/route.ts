// The type of one call of the API, of which the printed table of all calls (src/schema/routes.ts) consists.

/** What a call answers, what its body is (undefined: none, or it may be left away), and what its query can name. */
export type Route<Answer, Body, Query extends string> = {
  readonly answer: Answer;
  readonly body: Body;
  readonly query: Query;
};

/** A body that is no JSON. */
export type Bytes = string | Uint8Array | ReadableStream;
