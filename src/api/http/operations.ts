// Looks up operations by method and path, before a request is routed and after it has failed.
import type { AnyElysia } from "elysia";
import { listSchemas } from "./answers/answer-validators.ts";
import { getOptions, type OperationOptions } from "./operation.ts";

type Operation = {
  readonly method: string;
  /** As written in routes: variables begin with `:`. */
  readonly route: string;
  readonly segments: readonly string[];
  /** Sorts literal segments before variables: a digit per segment. */
  readonly order: string;
  readonly declared: OperationOptions;
  /** The route's options. */
  readonly hooks: object;
};

export class Operations {
  /** By number of segments, in the router's order: literal segments before variables. */
  readonly #byLength = new Map<number, Operation[]>();
  /** By method and route. */
  readonly #declared = new Map<string, OperationOptions>();

  constructor(routes: AnyElysia["routes"]) {
    const operations = routes.map(({ method, path, hooks }): Operation => {
      const segments = splitPath(path);
      const order = segments.map((segment) => (isVariable(segment) ? "1" : "0")).join("");
      return { method, route: path, segments, order, declared: getOptions(hooks), hooks };
    });
    for (const operation of operations.sort(compareOrder)) {
      const sameLength = this.#byLength.get(operation.segments.length);
      if (sameLength) sameLength.push(operation);
      else this.#byLength.set(operation.segments.length, [operation]);
      this.#declared.set(`${operation.method} ${operation.route}`, operation.declared);
    }
  }

  /** Returns the declaration of a method and route (`/users/:user`). */
  findOptions(method: string, route: string): OperationOptions | undefined {
    return this.#declared.get(`${method} ${route}`);
  }

  /** Returns the operation for a request's path. */
  find(method: string, path: string): Operation | undefined {
    const segments = splitPath(path);
    return this.#byLength
      .get(segments.length)
      ?.find((operation) => operation.method === method && matchesPath(operation.segments, segments));
  }

  /** Returns the methods a path accepts; empty when the path does not exist. */
  listMethods(path: string): string[] {
    return [...new Set(this.#listMatches(path).map(({ method }) => method))];
  }

  /** Returns the success status: the lowest declared one, or the highest for upstream clients. */
  findSuccessStatus(method: string, path: string, compat: boolean): number | undefined {
    const operation = this.find(method, path);
    return operation && listSuccesses(operation).at(compat ? -1 : 0);
  }

  #listMatches(path: string): Operation[] {
    const segments = splitPath(path);
    return (this.#byLength.get(segments.length) ?? []).filter((operation) => matchesPath(operation.segments, segments));
  }
}

/** Among routes of one length, orders by the first segment that is literal in only one of them. */
const compareOrder = ({ order: a }: Operation, { order: b }: Operation): number => (a < b ? -1 : Number(a > b));

/** Returns the values of a route's variables in a path; text that cannot be decoded matches nothing. */
export const parseVariables = ({ segments }: Pick<Operation, "segments">, path: string): Record<string, string> => {
  const pathSegments = splitPath(path);
  return Object.fromEntries(
    segments.flatMap((segment, i) => (isVariable(segment) ? [[segment.slice(1), decode(pathSegments[i] ?? "")]] : [])),
  );
};

const splitPath = (path: string): string[] => path.replace(/\/$/, "").split("/");

const isVariable = (segment: string): boolean => segment.startsWith(":");

const matchesPath = (route: readonly string[], path: readonly string[]): boolean =>
  route.every((segment, i) => isVariable(segment) || segment === path[i]);

/** Returns the declared success statuses in ascending order. */
const listSuccesses = ({ hooks }: Operation): number[] =>
  Object.keys(listSchemas(hooks))
    .map(Number)
    .filter((status) => status >= 200 && status < 400)
    .sort((a, b) => a - b);

const decode = (text: string): string => {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
};
