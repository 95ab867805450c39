// Defines the formats of strings in schemas. Elysia's own formats accept several date notations, JavaScript numbers (`1e3`), and UUIDs with
// a scheme prefix; the API accepts exactly one form of each (rule HT-28). src/server.ts loads this file before the first request.
import { FormatRegistry } from "@sinclair/typebox";

const DATE_TIME =
  /^(\d{4})-(\d\d)-(\d\d)[Tt](?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d+)?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;

/** Accepts RFC 3339 with date, time and zone. */
const isDateTime = (text: string): boolean => {
  const [, year, month, day] = DATE_TIME.exec(text) ?? [];
  if (year === undefined) return false;
  const days = new Date(Date.UTC(2000 + (Number(year) % 400), Number(month), 0)).getUTCDate();
  return Number(month) >= 1 && Number(month) <= 12 && Number(day) >= 1 && Number(day) <= days;
};

/** Accepts an integer in a query or path that is safe in JavaScript. */
const isInteger = (text: string): boolean => /^-?\d{1,16}$/.test(text) && Number.isSafeInteger(Number(text));

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

FormatRegistry.Set("uuid", (text) => UUID.test(text));
FormatRegistry.Set("date-time", isDateTime);
FormatRegistry.Set("integer", isInteger);
// For text parameters in a query (src/api/http/query.ts).
FormatRegistry.Set("flag", (text) => /^(?:|1|t|true|0|f|false)$/i.test(text));
FormatRegistry.Set("cursor", (text) => text === "" || (isInteger(text) && Number(text) >= 0));
