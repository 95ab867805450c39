// Draws a plot with uPlot on a canvas, in the page's colors and as wide as its box.
import UPlot from "uplot";
import rules from "uplot/dist/uPlot.min.css" with { type: "text" };
import { adoptSheet } from "../adopt-sheet.ts";
import type { Measure } from "./measure.ts";
import ownRules from "./plot.css" with { type: "text" };

const HEIGHT_PX = 200;

export type PlotLine = {
  readonly label: string;
  /** One value per day; null for no data. */
  readonly values: readonly (number | null)[];
};

type DrawingOptions = {
  readonly days: readonly string[];
  readonly lines: readonly PlotLine[];
  readonly measure: Measure;
  /** Called with the day under the pointer. */
  readonly onPoint: (day: number) => void;
};

/** Resolves a color of the page for the canvas: custom properties may use syntax that only style sheets understand. */
const readColor = (box: HTMLElement, name: string): string => {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  box.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
};

/** The same color, almost transparent. */
const toFaintColor = (color: string): string => color.replace(/^rgb\((.*)\)$/, "rgba($1, 0.1)");

export class PlotDrawing {
  readonly #plot: UPlot;
  readonly #sizeObserver: ResizeObserver;
  readonly #themeObserver: MutationObserver;
  readonly #darkMode = matchMedia("(prefers-color-scheme: dark)");

  constructor(box: HTMLElement, { days, lines, measure, onPoint }: DrawingOptions) {
    adoptSheet(rules);
    adoptSheet(ownRules);
    const font = `11px ${getComputedStyle(box).fontFamily}`;
    const axis = { font, stroke: () => readColor(box, "--text-3"), ticks: { show: false } };
    const grid = { stroke: () => readColor(box, "--plot-grid"), width: 1 };
    const getColor = (index: number) => () => readColor(box, `--plot-${index + 1}`);
    this.#plot = new UPlot(
      {
        width: Math.max(1, box.clientWidth),
        height: HEIGHT_PX,
        padding: [8, 12, 0, 0],
        legend: { show: false },
        cursor: { y: false, drag: { x: false, y: false }, points: { size: 8 } },
        scales: {
          x: { time: false, range: [0, Math.max(1, days.length - 1)] },
          y: { range: (_, __, max) => [0, max > 0 ? max * 1.1 : measure.minExtent] },
        },
        axes: [
          {
            ...axis,
            grid,
            space: 72,
            size: 24,
            incrs: [1, 2, 5, 7, 10, 14, 30, 60, 90],
            values: (_, ticks) => ticks.map((day) => days[day] ?? ""),
          },
          {
            ...axis,
            grid,
            space: 40,
            size: (_, values) => 12 + 7 * Math.max(1, ...(values ?? []).map((one) => one.length)),
            incrs: [...measure.steps],
            values: (_, ticks, __, ___, step) =>
              ticks.map((tick) => (measure.formatTick ? measure.formatTick(tick, step) : measure.format(tick))),
          },
        ],
        series: [
          {},
          ...lines.map(({ label, values }, index) => ({
            label,
            stroke: getColor(index),
            width: 1.5,
            ...(index === 0 ? { fill: () => toFaintColor(getColor(index)()) } : {}),
            // A line with a single day would be invisible.
            points: { show: values.filter((value) => value !== null).length < 3, size: 6, fill: getColor(index) },
          })),
        ],
        hooks: { setCursor: [({ cursor }) => onPoint(cursor.idx ?? days.length - 1)] },
      },
      [days.map((_, at) => at), ...lines.map(({ values }) => [...values])],
      box,
    );
    this.#sizeObserver = new ResizeObserver(() => {
      if (box.clientWidth > 0) this.#plot.setSize({ width: box.clientWidth, height: HEIGHT_PX });
    });
    this.#sizeObserver.observe(box);
    this.#themeObserver = new MutationObserver(this.#repaint);
    this.#themeObserver.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    this.#darkMode.addEventListener("change", this.#repaint);
  }

  /** Moves the cursor to a day, for keyboard control. */
  selectDay(day: number): void {
    this.#plot.setCursor({ left: this.#plot.valToPos(day, "x"), top: HEIGHT_PX / 2 });
  }

  end(): void {
    this.#sizeObserver.disconnect();
    this.#themeObserver.disconnect();
    this.#darkMode.removeEventListener("change", this.#repaint);
    this.#plot.destroy();
  }

  readonly #repaint = (): void => this.#plot.redraw(false);
}
