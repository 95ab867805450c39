// Which methods a path takes, for 405 (a path that exists with another method) instead of 404.
import type { AnyElysia } from "elysia";

type Pattern = { method: string; segments: string[] };

/** Returns a function that names the methods of the routes matching a path; empty when there is no such path. */
export const methodsByPath = (app: AnyElysia): ((path: string) => string[]) => {
  const patterns: Pattern[] = app.routes.map(({ method, path }) => ({ method, segments: segmentsOf(path) }));
  return (path) => {
    const segments = segmentsOf(path);
    return [...new Set(patterns.filter((pattern) => fits(pattern.segments, segments)).map(({ method }) => method))];
  };
};

const segmentsOf = (path: string): string[] => path.replace(/\/$/, "").split("/");

const fits = (pattern: string[], path: string[]): boolean =>
  pattern.length === path.length && pattern.every((part, i) => part.startsWith(":") || part === path[i]);
