// Sends email through the SMTP server in the settings. The library is loaded with the first message.
import type { Config } from "#base/config.ts";

export type Mail = { readonly to: string; readonly subject: string; readonly text: string; readonly id: string };

/** Timeout in milliseconds for connecting, for the greeting, and for inactivity. */
const TIMEOUT_MS = 10_000;

export class Mailer {
  readonly #config: Config;

  constructor(config: Config) {
    this.#config = config;
  }

  /** Returns whether email is configured. */
  get isSetUp(): boolean {
    return this.#config.smtp_host !== undefined && this.#config.smtp_from !== undefined;
  }

  /** Resolves when the server has accepted the message. Throws the server's error. `id` becomes the Message-ID, so that mail programs can recognize a repeated message. */
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
      connectionTimeout: TIMEOUT_MS,
      greetingTimeout: TIMEOUT_MS,
      socketTimeout: TIMEOUT_MS,
      disableFileAccess: true,
      disableUrlAccess: true,
      ...(smtp_username === undefined ? {} : { auth: { user: smtp_username, pass: smtp_password ?? "" } }),
    });
    try {
      // An address object is always one recipient, even if its text contains commas.
      const recipient = { name: "", address: to };
      await transport.sendMail({ from: smtp_from, to: recipient, subject, text, messageId: `<${id}@slipway>` });
    } finally {
      transport.close();
    }
  }
}
