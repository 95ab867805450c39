// Follows a user's inbox: new notifications and the unread count. Reads the store from its own cursor, so that nothing is lost between
// reads.
import { log } from "#base/log.ts";
import { findNewestNotification, listNotificationsAfter } from "#db/notifications/notifications.ts";
import { type InboxFilter, isWanted, loadUnreadCount, presentNotification } from "#domain/notifications/inbox.ts";
import type { ApiContext } from "../context.ts";
import { CLOSE, type Socket, type SocketHandler } from "../http/socket.ts";

export class InboxSocket implements SocketHandler {
  readonly #ctx: ApiContext;
  readonly #userId: string;
  readonly #filter: InboxFilter;
  #unsubscribes: readonly (() => void)[] = [];
  /** Key of the newest notification sent. */
  #cursor: number;
  #unreadCount: number;
  #isChecking = false;
  #isPending = false;

  private constructor(ctx: ApiContext, user_id: string, filter: InboxFilter, start: { key: number; unread: number }) {
    this.#ctx = ctx;
    this.#userId = user_id;
    this.#filter = filter;
    this.#cursor = start.key;
    this.#unreadCount = start.unread;
  }

  /** Starts following now, so that notifications created before the socket opens are sent too. */
  static async create(ctx: ApiContext, user_id: string, filter: InboxFilter): Promise<InboxSocket> {
    const key = await findNewestKey(ctx, user_id);
    return new InboxSocket(ctx, user_id, filter, { key, unread: await loadUnreadCount(ctx, user_id) });
  }

  open(socket: Socket): void {
    const { topics } = this.#ctx;
    const onChange = (): void => this.#check(socket);
    this.#unsubscribes = [topics.subscribe("inbox", this.#userId, onChange), topics.subscribe("missed", "", onChange)];
    onChange();
  }

  message(socket: Socket): void {
    socket.close(CLOSE.policy, "this stream takes no messages");
  }

  close(): void {
    for (const unsubscribe of this.#unsubscribes) unsubscribe();
  }

  #check(socket: Socket): void {
    this.#isPending = true;
    if (this.#isChecking) return;
    this.#isChecking = true;
    void this.#sendNew(socket)
      .catch((error) => {
        log("notifications").warn("an inbox could not be read: {error}", { error });
        socket.close(CLOSE.internal, "the inbox could not be read");
      })
      .finally(() => {
        this.#isChecking = false;
        if (this.#isPending && !socket.closing) this.#check(socket);
      });
  }

  async #sendNew(socket: Socket): Promise<void> {
    const { store } = this.#ctx;
    while (this.#isPending && !socket.closing) {
      this.#isPending = false;
      const rows = await store.all(listNotificationsAfter({ user_id: this.#userId, after: this.#cursor }));
      // Read after the notifications; otherwise the count might have to be corrected by another message.
      const unread_count = await loadUnreadCount(this.#ctx, this.#userId);
      // A notification that arrived between the two reads is sent with its content, not first as a count.
      if (
        rows.length === 0 &&
        unread_count !== this.#unreadCount &&
        (await findNewestKey(this.#ctx, this.#userId)) > this.#cursor
      ) {
        this.#isPending = true;
        continue;
      }
      this.#cursor = rows.at(-1)?.key ?? this.#cursor;
      const matching = rows.filter((row) => isWanted(row, this.#filter));
      for (const row of matching) socket.send(JSON.stringify({ notification: presentNotification(row), unread_count }));
      if (matching.length === 0 && unread_count !== this.#unreadCount) socket.send(JSON.stringify({ unread_count }));
      this.#unreadCount = unread_count;
      if (rows.length > 0) this.#isPending = true;
    }
  }
}

const findNewestKey = async ({ store }: ApiContext, user_id: string): Promise<number> =>
  (await store.get(findNewestNotification({ user_id })))?.key ?? 0;
