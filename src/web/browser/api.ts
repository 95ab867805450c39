// Calls of the API from the pages, signed in by the cookie.
import type { Generic } from "#schema/generic.ts";

/** What the server refused, in words for people. */
export class Problem extends Error {
  readonly status: number;

  constructor(status: number, body: Generic) {
    const fields = body.validations?.map(({ field, detail }) => `${field.replaceAll("_", " ")}: ${detail}`) ?? [];
    super([body.message, body.detail, ...fields].filter(Boolean).join(" "));
    this.status = status;
  }
}

/** Sends JSON and reads JSON. Throws Problem. */
export const call = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
  const response = await fetch(`/api/v2${path}`, {
    method,
    ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
  }).catch(() => {
    throw new Problem(0, { message: "The server cannot be reached." });
  });
  const text = await response.text();
  let answer: unknown;
  try {
    answer = text === "" ? undefined : JSON.parse(text);
  } catch {
    answer = { message: `The server answered ${response.status}.` };
  }
  if (!response.ok) throw new Problem(response.status, answer as Generic);
  return answer as T;
};
