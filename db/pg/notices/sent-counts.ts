// Detects missed notices: compares the number of notices that each node reports as sent with the number that arrived. Notices arrive in
// order and without loss while the connection lasts, so the last number is sufficient. Pure.
import type { Notice } from "./notice.ts";

export type SenderHeartbeat = {
  readonly epoch: number;
  /** The number of notices that the node had sent as of its last heartbeat. */
  readonly sent: number;
  /** Changes with each heartbeat. */
  readonly sign: string;
};

type KnownSender = Omit<SenderHeartbeat, "epoch"> & {
  readonly received: number;
  readonly signed_at: number;
  readonly isSilent: boolean;
};

/** `missed`: a node has sent more than was received; `gone`: a node has disappeared, and its last notices may be missing. */
export type SenderCheck = "nothing" | "missed" | "gone";

export class NoticeSenders {
  readonly #silence_ms: number;
  readonly #senders = new Map<number, KnownSender>();

  /** `silence_ms`: after this long without a heartbeat, a node may be gone. */
  constructor(silence_ms: number) {
    this.#silence_ms = silence_ms;
  }

  onNotice({ epoch, n = 0 }: Notice, now: number): void {
    const sender = this.#senders.get(epoch) ?? { sent: 0, sign: "", signed_at: now, isSilent: false, received: 0 };
    if (n > sender.received) this.#senders.set(epoch, { ...sender, received: n });
  }

  /** Treats everything known to be sent as received. */
  catchUp(): void {
    for (const [epoch, sender] of this.#senders)
      this.#senders.set(epoch, { ...sender, received: Math.max(sender.received, sender.sent) });
  }

  clear(): void {
    this.#senders.clear();
  }

  /**
   * Processes the current senders. A notice that was sent before the previous check and has not arrived was missed. Later notices may
   * still be on their way.
   */
  see(senders: readonly SenderHeartbeat[], now: number): SenderCheck {
    let [isMissed, isGone] = [false, false];
    for (const { epoch, sent, sign } of senders) {
      const sender = this.#senders.get(epoch) ?? { sent: 0, sign, signed_at: now, isSilent: false, received: 0 };
      isMissed ||= sender.sent > sender.received;
      const signed_at = sign === sender.sign ? sender.signed_at : now;
      const isSilent = now - signed_at >= this.#silence_ms;
      isGone ||= isSilent && !sender.isSilent;
      this.#senders.set(epoch, { sent, sign, signed_at, isSilent, received: Math.max(sender.received, sender.sent) });
    }
    for (const [epoch, { isSilent }] of this.#senders) {
      if (senders.some((one) => one.epoch === epoch)) continue;
      this.#senders.delete(epoch);
      isGone ||= !isSilent;
    }
    return isMissed ? "missed" : isGone ? "gone" : "nothing";
  }
}
