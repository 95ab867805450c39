// The live form of a template version: sends the current values, and receives the parameters to show and the errors of each.
import { type Signal, signal } from "@preact/signals";
import type { DynamicParameters } from "#schema/workspaces/dynamic-parameters.ts";
import { LiveSocket } from "./live-socket.ts";

export type Values = Readonly<Record<string, string>>;

export class FormSocket {
  /** The newest answer. Answers to older values are ignored. */
  readonly answer: Signal<DynamicParameters | undefined> = signal(undefined);
  readonly #socket: LiveSocket;
  #lastRequestId = -1;
  #values: Values;

  constructor(version_id: string, values: Values) {
    this.#values = values;
    this.#socket = new LiveSocket({
      address: () => `/api/v2/templateversions/${version_id}/dynamic-parameters`,
      onOpen: () => this.sendValues(this.#values),
      onMessage: (text) => {
        const answer = JSON.parse(text) as DynamicParameters;
        if (answer.id === this.#lastRequestId) this.answer.value = answer;
      },
    });
  }

  /** Sends the values to the server, as soon as the socket is open. */
  sendValues(values: Values): void {
    this.#values = values;
    this.#lastRequestId += 1;
    this.#socket.send(JSON.stringify({ id: this.#lastRequestId, inputs: values }));
  }

  end(): void {
    this.#socket.end();
  }
}
