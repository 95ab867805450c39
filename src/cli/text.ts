// Sanitizes foreign text for the terminal: it must not move the cursor, query the terminal, or spoof other text.
import { escapeHidden } from "#base/visible-text.ts";

/** Returns one line without control characters and escape sequences. */
export const toPlainLine = (text: string): string => toPlainLines(text).replaceAll("\n", " ");

/** Like `toPlainLine`, but keeps line breaks. Characters that change the direction of text are shown as codes. */
export const toPlainLines = (text: string): string =>
  escapeHidden(
    Bun.stripANSI(text)
      .replaceAll(/\r\n?/g, "\n")
      .replaceAll("\t", "    ")
      // biome-ignore lint/suspicious/noControlCharactersInRegex: these characters are removed
      .replaceAll(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/g, ""),
  );

/** Formats `3 hours ago`, `in 5 minutes` or `now`. `at` is RFC 3339. */
export const formatRelative = (at: string, now: number): string => {
  const seconds = Math.round((Date.parse(at) - now) / 1000);
  const size = Math.abs(seconds);
  if (size < 5) return "now";
  const [count, unit] =
    size < 120
      ? [size, "second"]
      : size < 5400
        ? [Math.round(size / 60), "minute"]
        : size < 172_800
          ? [Math.round(size / 3600), "hour"]
          : [Math.round(size / 86_400), "day"];
  const span = `${count} ${unit}${count === 1 ? "" : "s"}`;
  return seconds < 0 ? `${span} ago` : `in ${span}`;
};

/** Formats `8 hours`, `1 hour 30 minutes`. */
export const formatSpan = (ms: number): string => {
  const minutes = Math.round(ms / 60_000);
  const parts: [number, string][] = [
    [Math.floor(minutes / 1440), "day"],
    [Math.floor((minutes % 1440) / 60), "hour"],
    [minutes % 60, "minute"],
  ];
  return parts.flatMap(([count, unit]) => (count > 0 ? [`${count} ${unit}${count === 1 ? "" : "s"}`] : [])).join(" ");
};
