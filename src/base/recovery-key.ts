// The recovery key of home backups, as people read and type it.

/** The key in its one form, groups joined by hyphens; undefined for what cannot be one. */
export const parseRecoveryKey = (text: string): string | undefined => {
  const digits = text.replaceAll(/[\s-]/g, "").toLowerCase();
  if (!/^[0-9a-f]{32}$/.test(digits)) return undefined;
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
};
