// Ends what a key has opened when the key counts no more: revoked, expired by hand, its user suspended, deleted or with a new password
// (rule ID-10); and what shows a workspace when its caller has no part in it any more (rule SH-6). Used by every route that keeps a
// connection open.
import { findKeyWithUser } from "#db/api-keys.ts";
import { listMemberships } from "#db/members.ts";
import { findWorkspacePlace } from "#db/workspaces.ts";
import type { WorkspaceTarget } from "./access.ts";
import type { Caller, UserCaller } from "./caller.ts";
import type { ApiContext } from "./context.ts";
import { CLOSE, type Socket, type SocketHandler } from "./socket.ts";

type Parts = Pick<ApiContext, "store" | "clock" | "topics">;

const REASON = "the session has ended, sign in again";

/**
 * Calls `end` once when the caller's key (or agent token) is void. Also when it became void while the connection was being set up.
 * Returns how to stop listening.
 */
export const whenKeyGone = (ctx: Parts, caller: Caller, end: () => void): (() => void) => {
  let isOver = false;
  const stop = (): void => {
    isOver = true;
    for (const unsubscribe of subscriptions) unsubscribe();
  };
  const gone = (): void => {
    if (isOver) return;
    stop();
    end();
  };
  const subscriptions =
    caller.kind === "agent"
      ? [ctx.topics.subscribe("agent_gone", caller.agent_id, gone)]
      : [
          ctx.topics.subscribe("key_gone", caller.key_id, gone),
          ctx.topics.subscribe("key_gone", caller.user_id, ({ except }) => {
            if (except !== caller.key_id) gone();
          }),
        ];
  if (caller.kind === "user") {
    isAlive(ctx, caller.key_id).then(
      (alive) => alive || gone(),
      () => {},
    );
  }
  return stop;
};

const isAlive = async ({ store, clock }: Parts, id: string): Promise<boolean> => {
  const key = await store.get(findKeyWithUser({ id }));
  return key !== undefined && !key.deleted && key.status !== "suspended" && key.expires_at > clock.now();
};

/** What a connection is for: seeing (`maySeeWorkspace`) or working in (`mayUseWorkspace`) this workspace. */
export type Access = {
  readonly workspace_id: string;
  readonly may: (caller: UserCaller, workspace: WorkspaceTarget) => boolean;
};

const LOST = "you no longer have access to the workspace";

/**
 * Calls `end` once, with a reason, when the key is void or the user may no longer do this with the workspace: it is not shared with them
 * any more, or their roles or memberships have changed (rule SH-6). Returns how to stop listening.
 */
export const whenAccessLost = (
  ctx: Parts,
  caller: Caller,
  { workspace_id, may }: Access,
  end: (reason: string) => void,
): (() => void) => {
  const stops = [whenKeyGone(ctx, caller, () => gone(REASON))];
  let isOver = false;
  const stop = (): void => {
    isOver = true;
    for (const one of stops) one();
  };
  const gone = (reason: string): void => {
    if (isOver) return;
    stop();
    end(reason);
  };
  if (caller.kind === "agent") return stop;
  const look = async (): Promise<void> => {
    const now = await callerNow(ctx, caller);
    const workspace = now && (await ctx.store.get(findWorkspacePlace({ id: workspace_id })));
    if (!workspace || !may(now, workspace)) gone(LOST);
  };
  const again = () => void look().catch(() => gone(LOST));
  stops.push(
    ctx.topics.subscribe("access_changed", workspace_id, again),
    ctx.topics.subscribe("access_changed", caller.user_id, again),
  );
  // It may have been lost while the connection was being set up.
  again();
  return stop;
};

/** The same caller with the roles and memberships of this moment. */
const callerNow = async ({ store }: Parts, caller: UserCaller): Promise<UserCaller | undefined> => {
  const key = await store.get(findKeyWithUser({ id: caller.key_id }));
  if (!key) return undefined;
  const memberships = await store.all(listMemberships({ user_id: caller.user_id }));
  const organizations = memberships.map(({ organization_id, roles }) => [organization_id, roles] as const);
  return { ...caller, roles: key.roles, organizations: Object.fromEntries(organizations) };
};

/** The handler of a socket that closes (1008) when the caller's key is void: `upgrade(request, closeWhenKeyGone(ctx, caller, handler))`. */
export const closeWhenKeyGone = (ctx: Parts, caller: Caller, handler: SocketHandler): SocketHandler =>
  closing(handler, (close) => whenKeyGone(ctx, caller, () => close(REASON)));

/** The same, also when access to the workspace is lost. */
export const closeWhenAccessLost = (
  ctx: Parts,
  caller: Caller,
  access: Access,
  handler: SocketHandler,
): SocketHandler => closing(handler, (close) => whenAccessLost(ctx, caller, access, close));

const closing = (handler: SocketHandler, when: (close: (reason: string) => void) => () => void): SocketHandler => {
  const stops = new WeakMap<Socket, () => void>();
  return {
    open(socket) {
      stops.set(
        socket,
        when((reason) => socket.close(CLOSE.policy, reason)),
      );
      handler.open?.(socket);
    },
    message: (socket, data) => handler.message?.(socket, data),
    drain: (socket) => handler.drain?.(socket),
    close(socket, code, reason) {
      stops.get(socket)?.();
      handler.close?.(socket, code, reason);
    },
  };
};
