// What a request says of the length of its body, against what its route takes.
import { AppError } from "#base/errors.ts";
import { getPath } from "../errors.ts";
import type { Operations } from "../operations.ts";
import { ALWAYS_FITS, bodyLimit, tooLarge } from "./body.ts";

/** Refuses a body that is larger than its route takes before any of it has come in, also on routes that read none. */
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
