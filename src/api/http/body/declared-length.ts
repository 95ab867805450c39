// Checks a request's declared body length against the limit of its route.
import { AppError } from "#base/errors.ts";
import { getPath } from "../errors.ts";
import type { Operations } from "../operations.ts";
import { ALWAYS_FITS, bodyLimit, tooLarge } from "./body.ts";

/** Rejects a body that exceeds its route's limit before reading any of it, including on routes that take no body. */
export const checkDeclaredLength = ({ method, url, headers }: Request, operations: Operations): void => {
  if (method === "GET" || method === "HEAD") {
    if (!headers.has("transfer-encoding")) return;
    throw new AppError("invalid", `A ${method} request has no body.`);
  }
  const length = Number(headers.get("content-length"));
  if (length <= ALWAYS_FITS) return;
  const limit = bodyLimit(operations.find(method, getPath(url))?.declared);
  if (length > limit) throw tooLarge(limit);
};
