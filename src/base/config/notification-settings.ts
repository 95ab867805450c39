// Notification settings: email, which is disabled without a host, and web push.
import { choice, integer, matching, networks, text } from "./kinds.ts";
import { optional, setting } from "./setting.ts";

const group = "Email";
const address = matching(
  /^[^\s<>@]+@[^\s<>@]+$|^[^<>\r\n]+ <[^\s<>@]+@[^\s<>@]+>$/,
  "an address such as slipway@example.com or Slipway <slipway@example.com>",
  "ADDRESS",
);

export const NOTIFICATION_SETTINGS = {
  smtp_host: optional(matching(/^[A-Za-z0-9.:-]+$/, "a host name or an IP address", "HOST"), {
    group,
    help: "The SMTP server for outgoing email. Requires smtp_from.",
    absent: "no email is sent",
  }),
  smtp_port: setting(integer(1, 65_535), 587, { group, help: "The port of the SMTP server." }),
  smtp_tls: setting(choice("starttls", "tls", "none"), "starttls", {
    group,
    help: "How the connection to the SMTP server is encrypted: starttls, tls (usually port 465), or none for a server on this machine.",
  }),
  smtp_from: optional(address, { group, help: "The sender address of email.", absent: "no email is sent" }),
  smtp_username: optional(text, {
    group,
    help: "The user name for the SMTP server.",
    absent: "no sign-in",
  }),
  smtp_password: optional(text, {
    group,
    help: "The password for smtp_username. Prefer the environment variable or a file.",
    absent: "none",
    secret: true,
  }),
  webpush_private_networks: setting(networks, [], {
    group: "Notifications",
    help: "Private networks where browsers' push services are allowed. Browsers choose these services, so list only networks where requests from the server can do no harm. If empty, only public addresses, regardless of allowed_private_networks.",
  }),
};
