// Formats times and durations. Pure; uses the page's language.

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

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
export const formatShortTime = (at: number, now: number): string => {
  const past = now - at;
  const [time, today] = [new Date(at), new Date(now)];
  if (Math.abs(past) < MINUTE) return "now";
  if (past > 0 && past < HOUR) return `${Math.floor(past / MINUTE)} min`;
  if (past > 0 && past < 6 * HOUR) return `${Math.floor(past / HOUR)} h`;
  if (isSameDay(time, today)) return formatClock(time);
  if (Math.abs(past) < 6 * DAY) return `${WEEKDAYS[time.getDay()]} ${formatClock(time)}`;
  return formatDate(time, today);
};

/** Formats a past time for a sentence: now, 12 min ago, 3 h ago, Fri 18:00, 19 Oct. */
export const formatPastTime = (at: number, now: number): string =>
  formatShortTime(at, now).replace(/ (?:min|h)$/, "$& ago");

/** Formats a duration in milliseconds: 4 ms, 41 s, 12 min, 8 h 15 min, 3 days. */
export const formatDuration = (milliseconds: number): string => {
  if (milliseconds < 100) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 10_000) return `${(milliseconds / 1000).toFixed(1)} s`;
  if (milliseconds < 2 * MINUTE) return `${Math.round(milliseconds / 1000)} s`;
  if (milliseconds < 2 * HOUR) return `${Math.round(milliseconds / MINUTE)} min`;
  if (milliseconds < DAY) {
    const [hours, minutes] = [Math.floor(milliseconds / HOUR), Math.floor((milliseconds % HOUR) / MINUTE)];
    return minutes === 0 ? `${hours} h` : `${hours} h ${minutes} min`;
  }
  const days = Math.round(milliseconds / DAY);
  return days === 1 ? "1 day" : `${days} days`;
};

/** Formats an integer with thousands separators: 10,000. */
export const formatCount = (count: number): string => String(count).replace(/\B(?=(\d{3})+$)/g, ",");
