// Time as people say it, with the exact one as title. All times on a page move together, once in half a minute.
import { signal } from "@preact/signals";
import { shortTime } from "./words-of-time.ts";

/** Milliseconds since 1970; moves on so that "3 min" becomes "4 min". */
export const now = signal(Date.now());
setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 20_000);
document.addEventListener("visibilitychange", () => {
  now.value = Date.now();
});

const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "medium" });

/** `at` is RFC 3339 or milliseconds. */
export const Time = ({ at, class: name }: { at: string | number; class?: string }) => {
  const time = new Date(at);
  return (
    <time class={name} dateTime={time.toISOString()} title={exact.format(time)}>
      {shortTime(time.getTime(), now.value)}
    </time>
  );
};
