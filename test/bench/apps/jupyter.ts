// A notebook kernel in JupyterLab, over the WebSocket that its page opens.
import { openSocket, type Target } from "#test/api/applications/load.ts";

type Message = {
  readonly header: { readonly msg_type: string };
  readonly parent_header: { readonly msg_id?: string };
} & {
  readonly content: Readonly<Record<string, unknown>>;
};

export class JupyterKernel implements Disposable {
  readonly #socket: WebSocket;
  readonly #session = crypto.randomUUID();

  private constructor(socket: WebSocket) {
    this.#socket = socket;
  }

  static async open(side: Target): Promise<JupyterKernel> {
    const response = await fetch(`${side.origin}/api/kernels`, {
      method: "POST",
      headers: { ...side.headers, "content-type": "application/json", authorization: "token load" },
      body: JSON.stringify({ name: "python3" }),
    });
    if (!response.ok) throw new Error(`no kernel: ${response.status} ${await response.text()}`);
    const { id } = (await response.json()) as { id: string };
    return new JupyterKernel(await openSocket(side, `/api/kernels/${id}/channels?token=load`));
  }

  /** Runs a cell. Resolves with all its output, as text or HTML. */
  run(code: string): Promise<string> {
    const msg_id = crypto.randomUUID();
    const header = { msg_id, msg_type: "execute_request", username: "", session: this.#session, version: "5.3" };
    let output = "";
    return new Promise((resolve, reject) => {
      this.#socket.onclose = ({ code: closeCode, reason }) => reject(new Error(`closed with ${closeCode} ${reason}`));
      this.#socket.onmessage = ({ data }) => {
        const { header: reply, parent_header, content } = JSON.parse(String(data)) as Message;
        if (parent_header.msg_id !== msg_id) return;
        if (reply.msg_type === "stream") output += String(content.text);
        if (reply.msg_type === "display_data") output += (content.data as Record<string, string>)["text/html"];
        if (reply.msg_type === "error") reject(new Error(String(content.evalue)));
        if (reply.msg_type === "status" && content.execution_state === "idle") resolve(output);
      };
      const content = { code, silent: false, store_history: false, user_expressions: {}, allow_stdin: false };
      this.#socket.send(
        JSON.stringify({ header, parent_header: {}, metadata: {}, content, channel: "shell", buffers: [] }),
      );
    });
  }

  [Symbol.dispose](): void {
    this.#socket.onclose = null;
    this.#socket.close();
  }
}
