// The origin of a piece of work for the audit log: who it is done for and from where. It propagates automatically from the request through
// handlers and mailboxes, so that commands need no parameter for it. The server's own work has no origin (rule AU-3).
import { AsyncLocalStorage } from "node:async_hooks";

export type Origin = {
  /** Null if unknown. */
  readonly user_id: string | null;
  /** Null if there is no request. */
  readonly ip: string | null;
  readonly user_agent: string;
  /** A UUID; the zero UUID if there is no request. */
  readonly request_id: string;
  /** The status of the response on success. */
  readonly status_code?: number;
  /** Additional data, such as the agent that sent the request; part of `additional_fields`. */
  readonly note?: Readonly<Record<string, string>>;
};

/** Returns an origin, the same each time. Called only when an entry is written. */
export type GetOrigin = () => Origin;

const origins = new AsyncLocalStorage<GetOrigin | undefined>();

/** Runs `work`, and everything it awaits, with this origin; undefined means the server itself. */
export const withOrigin = <T>(origin: GetOrigin | undefined, work: () => T): T =>
  origins.getStore() === origin ? work() : origins.run(origin, work);

/** Returns the current origin, to pass it to work that continues elsewhere, such as in a mailbox. */
export const getCurrentOrigin = (): GetOrigin | undefined => origins.getStore();

/** Returns an origin that is computed on first use. */
export const lazyOrigin = (make: () => Origin): GetOrigin => {
  let created: Origin | undefined;
  return () => {
    created ??= make();
    return created;
  };
};
