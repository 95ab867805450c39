// Email through the SMTP server that the settings name. The library is loaded with the first message.
import type { Config } from "#base/config.ts";

export type Mail = { readonly to: string; readonly subject: string; readonly text: string; readonly id: string };

/** Milliseconds for each of connecting, greeting and silence. */
const PATIENCE_MS = 10_000;

export class Mailer {
  readonly #config: Config;

  constructor(config: Config) {
    this.#config = config;
  }

  /** Whether anything can be sent. */
  get isSetUp(): boolean {
    return this.#config.smtp_host !== undefined && this.#config.smtp_from !== undefined;
  }

  /** Resolves when the server has taken it; throws with its words. A message of the same id is the same message. */
  async send({ to, subject, text, id }: Mail): Promise<void> {
    const { smtp_host: host, smtp_port: port, smtp_tls: tls, smtp_from, smtp_username, smtp_password } = this.#config;
    if (host === undefined || smtp_from === undefined) throw new Error("no SMTP server is set up");
    const { createTransport } = await import("nodemailer");
    const transport = createTransport({
      host,
      port,
      secure: tls === "tls",
      requireTLS: tls === "starttls",
      ignoreTLS: tls === "none",
      connectionTimeout: PATIENCE_MS,
      greetingTimeout: PATIENCE_MS,
      socketTimeout: PATIENCE_MS,
      disableFileAccess: true,
      disableUrlAccess: true,
      ...(smtp_username === undefined ? {} : { auth: { user: smtp_username, pass: smtp_password ?? "" } }),
    });
    try {
      // An address object: what stands in it is one recipient, whatever is in its text.
      const recipient = { name: "", address: to };
      await transport.sendMail({ from: smtp_from, to: recipient, subject, text, messageId: `<${id}@slipway>` });
    } finally {
      transport.close();
    }
  }
}
