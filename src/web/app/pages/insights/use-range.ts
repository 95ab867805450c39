// The date range in the page's address.
import { useMemo } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import { type DateRange, parseRange } from "./range.ts";

/** Returns the range in the address. The object stays the same within an hour, so that the page is not redrawn. */
export const useRange = (): DateRange => {
  const { query } = useLocation();
  const hour = Math.floor(Date.now() / 3_600_000);
  return useMemo(
    () => parseRange(query, Date.now(), -new Date().getTimezoneOffset()),
    [query.days, query.from, query.to, query.zone, hour],
  );
};
