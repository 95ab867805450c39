// The query of `GET {agent}/logs` as callers really send it: cursors, flags, a format; and which of them exclude each other
// (facts/platform 3.1 and 4).
import { type Static, Type as t } from "@sinclair/typebox";
import { invalid, type Validation } from "#base/errors.ts";

const flag = (description: string) => t.Optional(t.String({ description }));

export const LogQuery = t.Object({
  before: t.Optional(t.String({ description: "Only lines with a smaller id." })),
  after: t.Optional(t.String({ description: "Only lines with a greater id." })),
  follow: flag("Upgrade to a WebSocket that goes on with new lines. Boolean."),
  no_compression: flag("Do not compress the frames of the WebSocket. Boolean."),
  format: t.Optional(t.String({ description: "`json` (default) or `text`; not with `follow`." })),
});

export type LogRequest = {
  /** Exclusive bounds of the ids. */
  after: number;
  before: number;
  follow: boolean;
  compress: boolean;
  format: "json" | "text";
};

const TRUE = new Set(["1", "t", "true"]);
const FALSE = new Set(["0", "f", "false"]);

/**
 * Reads the query. 400 names every parameter that has no meaning or excludes another. A flag without a value, as genuine clients
 * send it, means true (facts/wire 0).
 */
export const logRequest = (query: Static<typeof LogQuery>): LogRequest => {
  const wrong: Validation[] = [];
  const cursor = (field: "after" | "before", fallback: number): number => {
    const text = query[field];
    if (text === undefined || text === "") return fallback;
    const id = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
    if (Number.isSafeInteger(id)) return id;
    wrong.push({ field, detail: "must be a whole number, 0 or more" });
    return fallback;
  };
  const boolean = (field: "follow" | "no_compression"): boolean => {
    const text = query[field];
    if (text === undefined) return false;
    if (text === "") return true;
    if (TRUE.has(text.toLowerCase())) return true;
    if (!FALSE.has(text.toLowerCase())) wrong.push({ field, detail: "must be a boolean" });
    return false;
  };
  const follow = boolean("follow");
  const format = query.format ?? "json";
  if (format !== "json" && format !== "text") wrong.push({ field: "format", detail: "must be json or text" });
  if (format === "text" && follow) wrong.push({ field: "format", detail: "text is not possible together with follow" });
  if (follow && query.before) wrong.push({ field: "before", detail: "is not possible together with follow" });
  const after = cursor("after", 0);
  const before = cursor("before", Number.MAX_SAFE_INTEGER);
  const compress = !boolean("no_compression");
  if (wrong.length > 0) throw invalid("Query parameters have invalid values.", wrong);
  return { after, before, follow, compress, format: format as "json" | "text" };
};
