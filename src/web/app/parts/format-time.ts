// Formats times and durations. Pure; uses the page's language.

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

const isSameDay = (a: Date, b: Date): boolean => a.toDateString() === b.toDateString();

const formatClock = (time: Date): string =>
  `${String(time.getHours()).padStart(2, "0")}:${String(time.getMinutes()).padStart(2, "0")}`;

const WEEKDAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

const formatDate = (time: Date, today: Date): string => {
  const day = `${time.getDate()} ${MONTHS[time.getMonth()]}`;
  return time.getFullYear() === today.getFullYear() ? day : `${day} ${time.getFullYear()}`;
};

/** Formats a relative time: now, 12 min, 3 h, Fri 18:00, 19 Oct. Both arguments are milliseconds since 1970. */
export const formatShortTime = (timeMs: number, nowMs: number): string => {
  const ageMs = nowMs - timeMs;
  const [time, today] = [new Date(timeMs), new Date(nowMs)];
  if (Math.abs(ageMs) < MINUTE_MS) return "now";
  if (ageMs > 0 && ageMs < HOUR_MS) return `${Math.floor(ageMs / MINUTE_MS)} min`;
  if (ageMs > 0 && ageMs < 6 * HOUR_MS) return `${Math.floor(ageMs / HOUR_MS)} h`;
  if (isSameDay(time, today)) return formatClock(time);
  if (Math.abs(ageMs) < 6 * DAY_MS) return `${WEEKDAYS[time.getDay()]} ${formatClock(time)}`;
  return formatDate(time, today);
};

/** Formats a past time for a sentence: now, 12 min ago, 3 h ago, Fri 18:00, 19 Oct. */
export const formatPastTime = (timeMs: number, nowMs: number): string =>
  formatShortTime(timeMs, nowMs).replace(/ (?:min|h)$/, "$& ago");

/** Formats a duration in milliseconds: 4 ms, 41 s, 12 min, 8 h 15 min, 3 days. */
export const formatDuration = (milliseconds: number): string => {
  if (milliseconds < 100) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 10_000) return `${(milliseconds / 1000).toFixed(1)} s`;
  if (milliseconds < 2 * MINUTE_MS) return `${Math.round(milliseconds / 1000)} s`;
  if (milliseconds < 2 * HOUR_MS) return `${Math.round(milliseconds / MINUTE_MS)} min`;
  if (milliseconds < DAY_MS) {
    const [hours, minutes] = [Math.floor(milliseconds / HOUR_MS), Math.floor((milliseconds % HOUR_MS) / MINUTE_MS)];
    return minutes === 0 ? `${hours} h` : `${hours} h ${minutes} min`;
  }
  const days = Math.round(milliseconds / DAY_MS);
  return days === 1 ? "1 day" : `${days} days`;
};

/** Formats an integer with thousands separators: 10,000. */
export const formatCount = (count: number): string => String(count).replace(/\B(?=(\d{3})+$)/g, ",");
