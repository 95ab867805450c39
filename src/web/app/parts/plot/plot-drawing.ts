// Draws a plot with uPlot on a canvas, in the page's colors and as wide as its box.
import UPlot from "uplot";
import rules from "uplot/dist/uPlot.min.css" with { type: "text" };
import { adoptSheet } from "../adopt-sheet.ts";
import type { Measure } from "./measure.ts";
import own from "./plot.css" with { type: "text" };

const HEIGHT_PX = 200;

export type PlotLine = {
  readonly label: string;
  /** One value per day; null for no data. */
  readonly values: readonly (number | null)[];
};

type Options = {
  readonly days: readonly string[];
  readonly lines: readonly PlotLine[];
  readonly measure: Measure;
  /** Called with the day under the pointer. */
  readonly pointed: (day: number) => void;
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
const toFaintColor = (colour: string): string => colour.replace(/^rgb\((.*)\)$/, "rgba($1, 0.1)");

export class Drawing {
  readonly #plot: UPlot;
  readonly #size: ResizeObserver;
  readonly #theme: MutationObserver;
  readonly #dark = matchMedia("(prefers-color-scheme: dark)");

  constructor(box: HTMLElement, { days, lines, measure, pointed }: Options) {
    adoptSheet(rules);
    adoptSheet(own);
    const font = `11px ${getComputedStyle(box).fontFamily}`;
    const axis = { font, stroke: () => readColor(box, "--text-3"), ticks: { show: false } };
    const grid = { stroke: () => readColor(box, "--plot-grid"), width: 1 };
    const colour = (index: number) => () => readColor(box, `--plot-${index + 1}`);
    this.#plot = new UPlot(
      {
        width: Math.max(1, box.clientWidth),
        height: HEIGHT_PX,
        padding: [8, 12, 0, 0],
        legend: { show: false },
        cursor: { y: false, drag: { x: false, y: false }, points: { size: 8 } },
        scales: {
          x: { time: false, range: [0, Math.max(1, days.length - 1)] },
          y: { range: (_, __, most) => [0, most > 0 ? most * 1.1 : measure.least] },
        },
        axes: [
          {
            ...axis,
            grid,
            space: 72,
            size: 24,
            incrs: [1, 2, 5, 7, 10, 14, 30, 60, 90],
            values: (_, marks) => marks.map((mark) => days[mark] ?? ""),
          },
          {
            ...axis,
            grid,
            space: 40,
            size: (_, values) => 12 + 7 * Math.max(1, ...(values ?? []).map((one) => one.length)),
            incrs: [...measure.steps],
            values: (_, marks, __, ___, step) =>
              marks.map((one) => (measure.mark ? measure.mark(one, step) : measure.format(one))),
          },
        ],
        series: [
          {},
          ...lines.map(({ label, values }, index) => ({
            label,
            stroke: colour(index),
            width: 1.5,
            ...(index === 0 ? { fill: () => toFaintColor(colour(index)()) } : {}),
            // A line with a single day would be invisible.
            points: { show: values.filter((value) => value !== null).length < 3, size: 6, fill: colour(index) },
          })),
        ],
        hooks: { setCursor: [({ cursor }) => pointed(cursor.idx ?? days.length - 1)] },
      },
      [days.map((_, at) => at), ...lines.map(({ values }) => [...values])],
      box,
    );
    this.#size = new ResizeObserver(() => {
      if (box.clientWidth > 0) this.#plot.setSize({ width: box.clientWidth, height: HEIGHT_PX });
    });
    this.#size.observe(box);
    this.#theme = new MutationObserver(this.#repaint);
    this.#theme.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    this.#dark.addEventListener("change", this.#repaint);
  }

  /** Moves the cursor to a day, for keyboard control. */
  point(day: number): void {
    this.#plot.setCursor({ left: this.#plot.valToPos(day, "x"), top: HEIGHT_PX / 2 });
  }

  end(): void {
    this.#size.disconnect();
    this.#theme.disconnect();
    this.#dark.removeEventListener("change", this.#repaint);
    this.#plot.destroy();
  }

  readonly #repaint = (): void => this.#plot.redraw(false);
}
