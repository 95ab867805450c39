// The properties shared by all sections of the insights, and the placeholder for a report that is still loading.
import type { ComponentChildren } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { useResource } from "../../data/resource.ts";
import { Failed } from "../../parts/empty.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import type { Sheet } from "./csv.ts";
import { type DateRange, formatDay, formatDayAndWeekday, listDays } from "./range.ts";

export type PartProps = {
  readonly range: DateRange;
  /** Restricts the report to this template. */
  readonly template?: string;
  /** Called with the contents of the CSV file. */
  readonly onSheet: (sheet: Sheet | undefined) => void;
};

/** Returns the days of the range in short and long form. Returns the same arrays for the same range. */
export const useDays = (range: DateRange) =>
  useMemo(() => {
    const dates = listDays(range);
    return { dates, days: dates.map(formatDay), longDays: dates.map(formatDayAndWeekday) };
  }, [range.first, range.days]);

type ReportProps<T> = {
  readonly name: string;
  readonly props: PartProps;
  readonly load: () => Promise<T>;
  readonly toSheet: (data: T) => Sheet;
  readonly children: (data: T) => ComponentChildren;
};

/** Loads a report and renders it. */
export const Report = <T,>({ name, props, load, toSheet, children }: ReportProps<T>) => {
  const { range, template = "", onSheet } = props;
  const { query } = range;
  const { state, reload } = useResource(`insights ${name} ${template} ${query.start_time} ${query.end_time}`, load);
  const { data, error } = state.value;
  useEffect(() => {
    onSheet(data && toSheet(data));
    return () => onSheet(undefined);
  }, [data]);
  if (error && !data) return <Failed title="Can't load the report" error={error} reload={reload} />;
  if (!data) return <Skeleton lines={8} />;
  return <>{children(data)}</>;
};
