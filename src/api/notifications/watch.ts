// Follows a user's inbox: new notifications and the unread count. Reads the store from its own cursor, so that nothing is lost between
// reads.
import { log } from "#base/log.ts";
import { findNewestNotification, listNotificationsAfter } from "#db/notifications/notifications.ts";
import { type InboxFilter, isWanted, loadUnreadCount, presentNotification } from "#domain/notifications/inbox.ts";
import type { ApiContext } from "../context.ts";
import { CLOSE, type Socket, type SocketHandler } from "../http/socket.ts";

export class InboxSocket implements SocketHandler {
  readonly #ctx: ApiContext;
  readonly #user: string;
  readonly #filter: InboxFilter;
  #leaves: readonly (() => void)[] = [];
  /** Key of the newest notification sent. */
  #cursor: number;
  #unread: number;
  #isLooking = false;
  #isAsked = false;

  private constructor(ctx: ApiContext, user_id: string, filter: InboxFilter, from: { key: number; unread: number }) {
    this.#ctx = ctx;
    this.#user = user_id;
    this.#filter = filter;
    this.#cursor = from.key;
    this.#unread = from.unread;
  }

  /** Starts following now, so that notifications created before the socket opens are sent too. */
  static async from(ctx: ApiContext, user_id: string, filter: InboxFilter): Promise<InboxSocket> {
    const key = await newestKey(ctx, user_id);
    return new InboxSocket(ctx, user_id, filter, { key, unread: await loadUnreadCount(ctx, user_id) });
  }

  open(socket: Socket): void {
    const { topics } = this.#ctx;
    const look = (): void => this.#look(socket);
    this.#leaves = [topics.subscribe("inbox", this.#user, look), topics.subscribe("missed", "", look)];
    look();
  }

  message(socket: Socket): void {
    socket.close(CLOSE.policy, "this stream takes no messages");
  }

  close(): void {
    for (const leave of this.#leaves) leave();
  }

  #look(socket: Socket): void {
    this.#isAsked = true;
    if (this.#isLooking) return;
    this.#isLooking = true;
    void this.#tell(socket)
      .catch((error) => {
        log("notifications").warn("an inbox could not be read: {error}", { error });
        socket.close(CLOSE.internal, "the inbox could not be read");
      })
      .finally(() => {
        this.#isLooking = false;
        if (this.#isAsked && !socket.closing) this.#look(socket);
      });
  }

  async #tell(socket: Socket): Promise<void> {
    const { store } = this.#ctx;
    while (this.#isAsked && !socket.closing) {
      this.#isAsked = false;
      const rows = await store.all(listNotificationsAfter({ user_id: this.#user, after: this.#cursor }));
      // Read after the notifications; otherwise the count might have to be corrected by another message.
      const unread_count = await loadUnreadCount(this.#ctx, this.#user);
      // A notification that arrived between the two reads is sent with its content, not first as a count.
      if (
        rows.length === 0 &&
        unread_count !== this.#unread &&
        (await newestKey(this.#ctx, this.#user)) > this.#cursor
      ) {
        this.#isAsked = true;
        continue;
      }
      this.#cursor = rows.at(-1)?.key ?? this.#cursor;
      const wanted = rows.filter((row) => isWanted(row, this.#filter));
      for (const row of wanted) socket.send(JSON.stringify({ notification: presentNotification(row), unread_count }));
      if (wanted.length === 0 && unread_count !== this.#unread) socket.send(JSON.stringify({ unread_count }));
      this.#unread = unread_count;
      if (rows.length > 0) this.#isAsked = true;
    }
  }
}

const newestKey = async ({ store }: ApiContext, user_id: string): Promise<number> =>
  (await store.get(findNewestNotification({ user_id })))?.key ?? 0;
