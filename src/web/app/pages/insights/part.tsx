// What every part of the insights is given, and what stands where its report is not here yet.
import type { ComponentChildren } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { useResource } from "../../data/resource.ts";
import { Failed } from "../../parts/empty.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import type { Sheet } from "./csv.ts";
import { dayAndWeekday, daysIn, dayWords, type ShownRange } from "./range.ts";

export type PartProps = {
  readonly range: ShownRange;
  /** Of this template alone. */
  readonly template?: string;
  /** Called with the contents of the CSV file. */
  readonly sheet: (sheet: Sheet | undefined) => void;
};

/** The days of the range, in short and in longer words; the same arrays for the same range. */
export const useDays = (range: ShownRange) =>
  useMemo(() => {
    const dates = daysIn(range);
    return { dates, days: dates.map(dayWords), longDays: dates.map(dayAndWeekday) };
  }, [range.first, range.days]);

type ReportProps<T> = {
  readonly name: string;
  readonly props: PartProps;
  readonly read: () => Promise<T>;
  readonly sheetOf: (data: T) => Sheet;
  readonly children: (data: T) => ComponentChildren;
};

/** Reads a report and shows what is made of it. */
export const Report = <T,>({ name, props, read, sheetOf, children }: ReportProps<T>) => {
  const { range, template = "", sheet } = props;
  const { query } = range;
  const { state, again } = useResource(`insights ${name} ${template} ${query.start_time} ${query.end_time}`, read);
  const { data, error } = state.value;
  useEffect(() => {
    sheet(data && sheetOf(data));
    return () => sheet(undefined);
  }, [data]);
  if (error && !data) return <Failed what="Can't load the report" error={error} again={again} />;
  if (!data) return <Skeleton lines={8} />;
  return <>{children(data)}</>;
};
