/** Returns the text as one word of a POSIX shell, in single quotes. */
export const quoteForShell = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
