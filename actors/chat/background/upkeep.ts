// Combines the maintenance jobs of chats: the scheduler's sweep runs them, and shutdown waits for them.
import type { Chore } from "../../runtime/chore.ts";

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
