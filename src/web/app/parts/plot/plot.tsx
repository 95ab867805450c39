// A line chart over days, with the values of the selected day. Drawn by uPlot, which is loaded with the first plot. The arrow keys move
// between days, and the values are announced.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { loadCode } from "../../data/load-code.ts";
import type { Measure } from "./measure.ts";
import type { Drawing, PlotLine } from "./plot-drawing.ts";

type PlotProps = {
  readonly title: string;
  /** The unit, shown next to the title. */
  readonly unit?: string;
  /** The days in short form for the axis, and in long form. */
  readonly days: readonly string[];
  readonly longDays: readonly string[];
  /** At most four lines. */
  readonly lines: readonly PlotLine[];
  readonly measure: Measure;
};

export const Plot = ({ title, unit, days, longDays, lines, measure }: PlotProps) => {
  const box = useRef<HTMLDivElement>(null);
  const drawing = useRef<Drawing | undefined>(undefined);
  /** The day under the pointer; otherwise the last day. */
  const at = useSignal(days.length - 1);
  const previousCount = useRef(days.length);
  useEffect(() => {
    let isOver = false;
    // If the number of days is unchanged, the selected day stays.
    if (days.length !== previousCount.current) at.value = days.length - 1;
    previousCount.current = days.length;
    void loadCode(() => import("./plot-drawing.ts")).then(({ Drawing }) => {
      if (isOver || !box.current) return;
      drawing.current = new Drawing(box.current, { days, lines, measure, pointed: (day) => (at.value = day) });
      if (at.peek() < days.length - 1) drawing.current.point(at.peek());
    });
    return () => {
      isOver = true;
      drawing.current?.end();
      drawing.current = undefined;
    };
  }, [days, lines]);
  const shown = Math.min(at.value, days.length - 1);
  const formatValue = ({ values }: PlotLine): string => {
    const value = values[shown];
    return value === null || value === undefined ? "none" : measure.format(value);
  };
  const description = `${longDays[shown] ?? ""}: ${lines.map((line) => `${line.label} ${formatValue(line)}`).join(", ")}`;
  const step = (event: KeyboardEvent): void => {
    const steps: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, Home: -days.length, End: days.length };
    const by = steps[event.key];
    if (by === undefined) return;
    event.preventDefault();
    at.value = Math.max(0, Math.min(days.length - 1, shown + by));
    drawing.current?.point(at.value);
  };
  return (
    <section class="panel" aria-label={title}>
      <header>
        <h2>{title}</h2>
        <span class="push small dim num">
          {longDays[shown]}
          {unit && `, ${unit}`}
        </span>
      </header>
      <div class="body stack">
        <div
          ref={box}
          class="plot-box"
          role="slider"
          tabIndex={0}
          aria-label={`${title}, by day`}
          aria-valuemin={0}
          aria-valuemax={days.length - 1}
          aria-valuenow={shown}
          aria-valuetext={description}
          onKeyDown={step}
        />
        <ul class="legend">
          {lines.map((line, index) => (
            <li key={index}>
              <svg viewBox="0 0 10 10" aria-hidden="true">
                <rect class={`p${index + 1}`} width="10" height="10" rx="2" />
              </svg>
              {line.label} <b class="num">{formatValue(line)}</b>
            </li>
          ))}
        </ul>
      </div>
    </section>
  );
};
