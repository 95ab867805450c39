// The API client of the web app and of the plain pages (src/web/plain-page.ts), authenticated by the session cookie.
import type { Generic } from "#schema/generic.ts";
import { clearPrefetched, takeAnswer } from "./early.ts";

/** An error response of the server, with a message for the user. */
export class Problem extends Error {
  readonly status: number;
  readonly detail: string;
  readonly body: Generic;

  constructor(status: number, body: Generic) {
    super(formatError(status, body));
    this.status = status;
    this.detail = body.detail ?? "";
    this.body = body;
  }

  /** Returns true if the server rejected this field. */
  hasErrorFor(field: string): boolean {
    return (this.body.validations ?? []).some((one) => one.field === field);
  }
}

/** Returns the validation errors, or else the message. Not both, because the message repeats the errors. */
const formatError = (status: number, { message, detail, validations = [] }: Generic): string =>
  status === 400 && validations.length > 0
    ? formatValidations(validations)
    : [message, detail].filter(Boolean).join(" ");

type Validations = NonNullable<Generic["validations"]>;

export const formatValidations = (validations: Validations): string =>
  validations.map(({ field, detail }) => `${toTitle(field)}: ${detail}`).join(" ");

const ACRONYMS = /\b(?:url|id|api|ssh|mcp|ttl|cpu)\b/gi;

/** Returns the words for a field: `base_url` is "Base URL", and `people[0].email` is "Email". */
const toTitle = (field: string): string => {
  const name = field.split(/[.[\]]+/).findLast((part) => /^[a-z]\w*$/i.test(part)) ?? field;
  const words = name.replaceAll("_", " ").replaceAll(ACRONYMS, (one) => one.toUpperCase());
  return words.charAt(0).toUpperCase() + words.slice(1);
};

/** Sends and receives JSON. Throws Problem. */
export const call = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
  const text = body === undefined ? undefined : JSON.stringify(body);
  const prefetched = takeAnswer(method, path, text);
  if (!prefetched && method !== "GET") clearPrefetched();
  if (prefetched?.value !== undefined) return prefetched.value as T;
  const headers = { "content-type": "application/json" };
  const requested =
    prefetched?.answer ?? fetch(`/api/v2${path}`, { method, ...(text === undefined ? {} : { body: text, headers }) });
  const response = await requested.catch(() => {
    throw new Problem(0, { message: "The server cannot be reached." });
  });
  const output = await response.text();
  let answer: unknown;
  try {
    answer = output === "" ? undefined : JSON.parse(output);
  } catch {
    answer = { message: `The server answered ${response.status}.` };
  }
  if (!response.ok) throw new Problem(response.status, answer as Generic);
  return answer as T;
};
