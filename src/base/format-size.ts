// Formats numbers of bytes, the same on pages, in the command line, in notifications and in errors. Pure.

const LARGE_UNITS = ["MiB", "GiB", "TiB"] as const;

/** Formats `512 B`, `12 KiB`, `3.4 MiB`, `23.6 GiB`. */
export const formatSize = (bytes: number): string => {
  if (bytes < 1024) return `${bytes} B`;
  if (bytes < 1024 ** 2) return `${Math.ceil(bytes / 1024)} KiB`;
  let value = bytes / 1024 ** 2;
  let unit = 0;
  for (; value >= 1024 && unit < LARGE_UNITS.length - 1; unit++) value /= 1024;
  return `${value.toFixed(1)} ${LARGE_UNITS[unit]}`;
};
