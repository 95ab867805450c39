// The days that the address asks for.
import { useMemo } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import { rangeFor, type ShownRange } from "./range.ts";

/** The range in the address. Kept while the hour lasts, so that what is drawn stays. */
export const useRange = (): ShownRange => {
  const { query } = useLocation();
  const hour = Math.floor(Date.now() / 3_600_000);
  return useMemo(
    () => rangeFor(query, Date.now(), -new Date().getTimezoneOffset()),
    [query.days, query.from, query.to, query.zone, hour],
  );
};
