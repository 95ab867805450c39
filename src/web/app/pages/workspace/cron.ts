// Converts the autostart schedule between the form and the API's format: CRON_TZ=Europe/Berlin 0 9 * * 1-5. Pure.

export const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"] as const;

export type AutostartSchedule = { readonly time: string; readonly days: readonly number[]; readonly zone: string };

const padTwo = (value: string): string => value.padStart(2, "0");

const parseDays = (text: string): number[] => {
  if (text === "*") return [0, 1, 2, 3, 4, 5, 6];
  const days = text.split(",").flatMap((part) => {
    const [from = "", to = from] = part.split("-");
    const toIndex = (name: string): number => {
      const dayIndex = DAYS.findIndex((day) => day.toLowerCase() === name.toLowerCase());
      return dayIndex < 0 ? Number(name) % 7 : dayIndex;
    };
    const [first, last] = [toIndex(from), toIndex(to)];
    return Array.from({ length: ((last - first + 7) % 7) + 1 }, (_, offset) => (first + offset) % 7);
  });
  return [...new Set(days)].sort();
};

/** Returns undefined if there is no schedule or the form cannot show it. */
export const parseCron = (schedule: string | undefined): AutostartSchedule | undefined => {
  const [, zone = "UTC", minute = "", hour = "", days = ""] =
    schedule?.match(/^(?:CRON_TZ=(\S+) )?(\d{1,2}) (\d{1,2}) \* \* (\S+)$/) ?? [];
  return minute === "" ? undefined : { zone, time: `${padTwo(hour)}:${padTwo(minute)}`, days: parseDays(days) };
};

export const toCron = ({ time, days, zone }: AutostartSchedule): string => {
  const [hour = "0", minute = "0"] = time.split(":");
  return `CRON_TZ=${zone} ${Number(minute)} ${Number(hour)} * * ${days.length === 7 ? "*" : days.join(",")}`;
};
