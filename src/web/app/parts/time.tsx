// A relative time, with the exact time as its title. All times on a page are updated together every 30 seconds.
import { signal } from "@preact/signals";
import { formatPastTime, formatShortTime } from "./format-time.ts";

/** Milliseconds since 1970, updated so that "3 min" becomes "4 min". */
export const now = signal(Date.now());
setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 20_000);
document.addEventListener("visibilitychange", () => {
  now.value = Date.now();
});

let format: Intl.DateTimeFormat | undefined;

/** Formats with day and second in the browser's language. The formatter is created on first use, which takes tens of milliseconds. */
export const formatExactTime = (at: string | number): string => {
  format ??= new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "medium" });
  return format.format(new Date(at));
};

// The exact time is added when the user points at it.
const onPoint = ({ target }: Event): void => {
  const time = target instanceof Element ? target.closest("time") : null;
  if (time && !Number.isNaN(Date.parse(time.dateTime))) time.title = formatExactTime(time.dateTime);
};
document.addEventListener("pointerover", onPoint, { passive: true });

type TimeProps = {
  /** RFC 3339 or milliseconds. */
  readonly at: string | number;
  /** For a past time in a sentence or after a label: "12 min ago". Columns of times are shorter without it. */
  readonly ago?: boolean;
  readonly class?: string;
};

export const Time = ({ at, ago, class: name }: TimeProps) => {
  const time = new Date(at);
  return (
    <time class={name} dateTime={time.toISOString()}>
      {(ago ? formatPastTime : formatShortTime)(time.getTime(), now.value)}
    </time>
  );
};
