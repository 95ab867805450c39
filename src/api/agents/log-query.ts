// Parses the query of `GET {agent}/logs` as clients actually send it: cursors, flags, a format, and which of them are mutually exclusive
// (facts/platform 3.1 and 4).
import { type Static, Type as t } from "@sinclair/typebox";
import { invalid, type Validation } from "#base/errors.ts";
import { cursorQuery, flagQuery, parseFlag, textQuery } from "../http/query.ts";

export const LogQuery = t.Object({
  before: cursorQuery("Return only lines with a smaller ID. Can't be combined with `follow`."),
  after: cursorQuery("Return only lines with a greater ID."),
  follow: flagQuery("Upgrade to a WebSocket and keep sending new lines."),
  no_compression: flagQuery("Don't compress WebSocket frames."),
  format: textQuery("The response format: `json` (default) or `text`. Can't be combined with `follow`.", {
    type: "string",
    enum: ["json", "text"],
  }),
});

export type LogRequest = {
  /** Exclusive bounds of the line IDs. */
  after: number;
  before: number;
  follow: boolean;
  compress: boolean;
  format: "json" | "text";
};

/**
 * Parses the query. Rejects with 400 and names every parameter that is invalid or conflicts with another. A flag without a value, as
 * upstream clients send it, means true (facts/wire 0).
 */
export const parseLogRequest = (query: Static<typeof LogQuery>): LogRequest => {
  const problems: Validation[] = [];
  const isSet = (text: string | undefined): boolean => text === "" || parseFlag(text);
  const follow = isSet(query.follow);
  const format = query.format ?? "json";
  if (format !== "json" && format !== "text") problems.push({ field: "format", detail: "must be json or text" });
  if (format === "text" && follow)
    problems.push({ field: "format", detail: "text is not possible together with follow" });
  if (follow && query.before) problems.push({ field: "before", detail: "is not possible together with follow" });
  const after = Number(query.after || 0);
  const before = Number(query.before || Number.MAX_SAFE_INTEGER);
  const compress = !isSet(query.no_compression);
  if (problems.length > 0) throw invalid("Query parameters have invalid values.", problems);
  return { after, before, follow, compress, format: format as "json" | "text" };
};
