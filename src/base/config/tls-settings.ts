// Settings of serving over TLS without a proxy in front.
import { path } from "./kinds.ts";
import { optional } from "./setting.ts";

export const TLS_SETTINGS = {
  tls_cert_file: optional(path, {
    group: "Network",
    help: "A certificate with its chain, in PEM form; then the server speaks https. Read at start: restart the server when it was renewed. Needs the setting below.",
    absent: "the server speaks http",
  }),
  tls_key_file: optional(path, {
    group: "Network",
    help: "The private key of the certificate, in PEM form and without a password.",
    absent: "none",
  }),
};
