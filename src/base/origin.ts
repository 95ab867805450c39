// Who a piece of work is done for, and from where: what the audit log tells of a change. It goes along on its own from the request through
// handlers and mailboxes, so that no command has to carry it; work that the server does on its own has none (rule AU-3).
import { AsyncLocalStorage } from "node:async_hooks";

export type Origin = {
  /** Null: unknown. */
  readonly user_id: string | null;
  /** Null: no request. */
  readonly ip: string | null;
  readonly user_agent: string;
  /** UUID; the zero UUID where there is no request. */
  readonly request_id: string;
  /** What the request is answered with when it succeeds. */
  readonly status_code?: number;
  /** What else there is to say, such as the agent that asked for it; part of `additional_fields`. */
  readonly note?: Readonly<Record<string, string>>;
};

/** Made only when an entry is written; gives the same each time. */
export type OriginOf = () => Origin;

const origins = new AsyncLocalStorage<OriginOf | undefined>();

/** Runs `work`, and all that it awaits, for this origin; undefined: for the server itself. */
export const withOrigin = <T>(origin: OriginOf | undefined, work: () => T): T =>
  origins.getStore() === origin ? work() : origins.run(origin, work);

/** To be handed on to work that continues elsewhere, such as in a mailbox. */
export const originNow = (): OriginOf | undefined => origins.getStore();

/** Makes an origin at its first use. */
export const lazyOrigin = (make: () => Origin): OriginOf => {
  let made: Origin | undefined;
  return () => {
    made ??= make();
    return made;
  };
};
