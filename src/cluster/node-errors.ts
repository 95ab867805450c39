// Transfers errors between nodes. Errors that callers distinguish keep their type. Other errors become internal errors, and their text is
// written only to the log of the node where they happened.
import { AppError, NotStartedError } from "#base/errors.ts";
import { log } from "#base/log.ts";
import { CommitError, type Refusal } from "#db/engine/store.ts";
import { WireError, type WireFailure } from "#src/wire/index.ts";

type Member = "message" | "kind" | "detail" | "validations" | "retry_after" | "reason" | "members";

type ErrorMessage =
  | { readonly type: "wire"; readonly message: string; readonly failure: WireFailure }
  | { readonly type: "not_begun"; readonly message: string }
  | { readonly type: "commit"; readonly message: string; readonly reason: Refusal; readonly constraint: string }
  | ({ readonly type: "app" } & Pick<AppError, Member>)
  | { readonly type: "internal" };

/** Encodes an error for the wire. `doing` names the operation in the log entry of an error that is not transferred. */
export const formatWireError = (error: unknown, doing: string): string => JSON.stringify(toMessage(error, doing));

const toMessage = (error: unknown, doing: string): ErrorMessage => {
  if (error instanceof WireError) return { type: "wire", message: error.message, failure: error.failure };
  if (error instanceof NotStartedError) return { type: "not_begun", message: error.message };
  if (error instanceof CommitError) {
    const { message, reason, constraint } = error;
    return { type: "commit", message, reason, constraint };
  }
  if (error instanceof AppError) {
    const { message, kind, detail, validations, retry_after, reason, members } = error;
    return { type: "app", message, kind, detail, validations, retry_after, reason, members };
  }
  log("cluster").error("{doing} failed for another node: {error}", { doing, error });
  return { type: "internal" };
};

/** Returns the error sent by another node. */
export const parseWireError = (text: string, node: string): Error => {
  const received = JSON.parse(text) as ErrorMessage;
  if (received.type === "wire") return new WireError(received.failure, received.message);
  if (received.type === "not_begun") return new NotStartedError(received.message);
  if (received.type === "commit")
    return new CommitError(received.reason, received.message, { constraint: received.constraint });
  if (received.type === "internal") return new Error(`node ${node} failed; see its log`);
  const { kind, message, detail, validations, members, retry_after, reason } = received;
  const optional = {
    ...(retry_after === undefined ? {} : { retry_after }),
    ...(reason === undefined ? {} : { reason }),
  };
  return new AppError(kind, message, { detail, validations, members, ...optional });
};
