// Second factors of a user: list, enroll or disable an authenticator app, recovery codes, administration, and reauthentication.
import type { ApiContext } from "../context.ts";
import { routes } from "../http/routes.ts";
import { factorAdministration } from "./administration.ts";
import { confirmation } from "./confirm.ts";
import { passkeys } from "./passkeys.ts";
import { recoveryCodes } from "./recovery.ts";
import { totp } from "./totp.ts";

export const factors = (ctx: ApiContext) =>
  routes()
    .use(factorAdministration(ctx))
    .use(totp(ctx))
    .use(recoveryCodes(ctx))
    .use(passkeys(ctx))
    .use(confirmation(ctx));
