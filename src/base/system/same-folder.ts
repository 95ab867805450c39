import { trimEnd } from "../text/trim.ts";

/**
 * Returns whether a path that a call names leads to the folder in which it runs anyway. Paths with `..` never do, because a symbolic link may
 * precede it. `folder`: undefined if unknown.
 */
export const isSameFolder = (path: string, folder: string | undefined): boolean => {
  const named = trimSlashes(path);
  return named === "" || named === "." || (folder !== undefined && named === trimSlashes(folder));
};

const trimSlashes = (path: string): string => path.charAt(0) + trimEnd(path.slice(1), "/");
