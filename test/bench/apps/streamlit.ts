// A Streamlit session over its WebSocket: the messages that a page receives for a run of the script.
import { openSocket, type Target } from "#test/api/applications/load.ts";

/** A table of about 8 MB with constant values. */
export const SCRIPT = `import numpy as np, pandas as pd, streamlit as st
st.title("load")
st.dataframe(pd.DataFrame(np.random.default_rng(1).random((125_000, 8))))
`;
/** The encoded message BackMsg { rerun_script: ClientState {} }. */
const RERUN = Buffer.from([0x5a, 0x00]);

export class StreamlitSession implements Disposable {
  readonly #socket: WebSocket;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
  }

  static async open(side: Target): Promise<StreamlitSession> {
    const { host = "" } = side.headers;
    const options = { protocols: ["streamlit"], more: { origin: `http://${host}` } };
    return new StreamlitSession(await openSocket(side, "/_stcore/stream", options));
  }

  /** Runs the script. Resolves with the first message of at least `minBytes`, which contains the table. */
  run(minBytes: number): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      this.#socket.onclose = ({ code, reason }) => reject(new Error(`closed with ${code} ${reason}`));
      this.#socket.onmessage = ({ data }) => {
        const bytes = data as unknown as Buffer;
        if (bytes.length >= minBytes) resolve(Buffer.from(bytes));
      };
      this.#socket.send(RERUN);
    });
  }

  [Symbol.dispose](): void {
    this.#socket.onclose = null;
    this.#socket.close();
  }
}
