// A line chart over days, with the values of the selected day. Drawn by uPlot, which is loaded with the first plot. The arrow keys move
// between days, and the values are announced.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { loadCode } from "../../data/load-code.ts";
import type { Measure } from "./measure.ts";
import type { PlotDrawing, PlotLine } from "./plot-drawing.ts";

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
  const drawing = useRef<PlotDrawing | undefined>(undefined);
  /** The day under the pointer; otherwise the last day. */
  const selectedDay = useSignal(days.length - 1);
  const previousCount = useRef(days.length);
  useEffect(() => {
    let isUnmounted = false;
    // If the number of days is unchanged, the selected day stays.
    if (days.length !== previousCount.current) selectedDay.value = days.length - 1;
    previousCount.current = days.length;
    void loadCode(() => import("./plot-drawing.ts")).then(({ PlotDrawing }) => {
      if (isUnmounted || !box.current) return;
      drawing.current = new PlotDrawing(box.current, {
        days,
        lines,
        measure,
        onPoint: (day) => (selectedDay.value = day),
      });
      if (selectedDay.peek() < days.length - 1) drawing.current.selectDay(selectedDay.peek());
    });
    return () => {
      isUnmounted = true;
      drawing.current?.end();
      drawing.current = undefined;
    };
  }, [days, lines]);
  const shownDay = Math.min(selectedDay.value, days.length - 1);
  const formatValue = ({ values }: PlotLine): string => {
    const value = values[shownDay];
    return value === null || value === undefined ? "none" : measure.format(value);
  };
  const description = `${longDays[shownDay] ?? ""}: ${lines.map((line) => `${line.label} ${formatValue(line)}`).join(", ")}`;
  const onKeyDown = (event: KeyboardEvent): void => {
    const steps: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, Home: -days.length, End: days.length };
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    selectedDay.value = Math.max(0, Math.min(days.length - 1, shownDay + step));
    drawing.current?.selectDay(selectedDay.value);
  };
  return (
    <section class="panel" aria-label={title}>
      <header>
        <h2>{title}</h2>
        <span class="push small dim num">
          {longDays[shownDay]}
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
          aria-valuenow={shownDay}
          aria-valuetext={description}
          onKeyDown={onKeyDown}
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
