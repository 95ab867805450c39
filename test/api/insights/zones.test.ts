// The start of days in zones with daylight saving or unusual offsets.
import { expect, test } from "bun:test";
import { makeFixedZone, makeNamedZone } from "#domain/insights/zones.ts";

const listDayStarts = (zone: string, from: string, days: number): string[] => {
  const { startOf } = makeNamedZone(zone);
  const first = Date.parse(`${from}T00:00:00Z`) / 86_400_000;
  return Array.from({ length: days }, (_, i) => new Date(startOf(first + i)).toISOString().slice(5, 16));
};

test("[IN-11] a day starts at its first moment, even if clocks change at midnight", () => {
  expect(listDayStarts("Europe/Berlin", "2030-03-30", 3)).toEqual(["03-29T23:00", "03-30T23:00", "03-31T22:00"]);
  expect(listDayStarts("America/New_York", "2030-11-02", 3)).toEqual(["11-02T04:00", "11-03T04:00", "11-04T05:00"]);
  // Clocks changed from midnight to one, so this day has no midnight.
  expect(listDayStarts("Asia/Beirut", "2024-03-30", 3)).toEqual(["03-29T22:00", "03-30T22:00", "03-31T21:00"]);
  expect(listDayStarts("Asia/Kathmandu", "2030-01-01", 2)).toEqual(["12-31T18:15", "01-01T18:15"]);
  expect(listDayStarts("Pacific/Kiritimati", "2030-01-01", 1)).toEqual(["12-31T10:00"]);
  expect(listDayStarts("Pacific/Pago_Pago", "2030-01-01", 1)).toEqual(["01-01T11:00"]);
});

test("[IN-11] every moment belongs to the day that started last, in a sample of all zones", () => {
  for (const zone of Intl.supportedValuesOf("timeZone").filter((_, i) => i % 7 === 0)) {
    const { dayOf, startOf } = makeNamedZone(zone);
    for (let at = Date.UTC(2030, 0, 1, 12); at < Date.UTC(2031, 0, 1); at += 86_400_000 * 13) {
      const day = dayOf(at);
      expect([zone, startOf(day) <= at, startOf(day + 1) > at]).toEqual([zone, true, true]);
    }
  }
});

test("[IN-7] days in a zone with a fixed offset have 24 hours", () => {
  const { dayOf, startOf } = makeFixedZone(5.5);
  expect(new Date(startOf(dayOf(Date.UTC(2030, 0, 1, 18, 30)))).toISOString()).toBe("2030-01-01T18:30:00.000Z");
  expect(new Date(startOf(dayOf(Date.UTC(2030, 0, 1, 18, 29)))).toISOString()).toBe("2029-12-31T18:30:00.000Z");
});
