// What is done beside the chats now and then: the scheduler's sweep calls it, the end of the server waits for it.

export interface Chore {
  /** Looks whether there is something to do, and does it outside of the caller's turn. */
  sweep(): void;
  /** Resolves when nothing of it runs. */
  idle(): Promise<void>;
  /** Resolves when what runs has ended; nothing is begun any more. */
  stop(): Promise<void>;
}

export class ChatUpkeep implements Chore {
  readonly #chores: readonly Chore[];

  constructor(chores: readonly Chore[]) {
    this.#chores = chores;
  }

  sweep(): void {
    for (const chore of this.#chores) chore.sweep();
  }

  async idle(): Promise<void> {
    await Promise.all(this.#chores.map((chore) => chore.idle()));
  }

  async stop(): Promise<void> {
    await Promise.all(this.#chores.map((chore) => chore.stop()));
  }
}
