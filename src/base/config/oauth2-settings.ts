// Settings of the OAuth 2 provider: programs that ask people for access instead of for a token to paste.
import { flag } from "./kinds.ts";
import { setting } from "./setting.ts";

export const OAUTH2_SETTINGS = {
  oauth2_provider: setting(flag, false, {
    group: "Signing in",
    help: "Whether programs may ask people for access with OAuth 2. Off: nothing is answered at /oauth2/ and /.well-known/, and editors ask for a token to paste.",
  }),
  oauth2_registration: setting(flag, true, {
    group: "Signing in",
    help: "Whether programs may register themselves for that, as editors do; they can be sent back only to programs on the same machine as the browser. Without it owners make every application. Counts with oauth2_provider.",
  }),
} as const;
