// The text form of the recovery key of home backups.

/** Returns the key in its canonical form, groups joined by hyphens; undefined if the text is not a key. */
export const parseRecoveryKey = (text: string): string | undefined => {
  const digits = text.replaceAll(/[\s-]/g, "").toLowerCase();
  if (!/^[0-9a-f]{32}$/.test(digits)) return undefined;
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
};
