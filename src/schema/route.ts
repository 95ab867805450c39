// The type of one API call, used by the generated table of all calls (src/schema/routes.ts).

/** A call's response, its body (undefined: none, or optional), and its query parameters. */
export type Route<Answer, Body, Query extends string> = {
  readonly answer: Answer;
  readonly body: Body;
  readonly query: Query;
};

/** A body that is not JSON. */
export type Bytes = string | Uint8Array | ReadableStream;
