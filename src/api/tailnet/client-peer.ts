// Identifies a private network client before it connects: its protocol version and its peer (facts/wire 2.1). [TL-10] [TL-14]
import { t } from "elysia";
import { AppError, invalid } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import type { ApiContext } from "../context.ts";
import { openResumeToken } from "./resume-token.ts";

export const clientQuery = (version: string) =>
  t.Object({
    version: t.Optional(
      t.String({ description: `The protocol version as \`major.minor\`; default ${version}. Any 2.x is supported.` }),
    ),
    resume_token: t.Optional(
      t.String({
        description:
          "A resume token from RefreshResumeToken of an earlier connection. The client remains the same peer.",
      }),
    ),
  });

/** Maps old versions of `coordinate` to 2.0: their clients send 1.x or nothing (rule TL-10). */
export const parseAgentVersion = (version = "2.0"): string => (/^1\.\d{1,4}$/.test(version) ? "2.0" : version);

/** Rejects any major version but 2 with 400; upstream clients compare the message. */
export const checkVersion = (version: string): void => {
  if (/^2\.\d{1,4}$/.test(version)) return;
  throw invalid("Unknown or unsupported API version", [{ field: "version", detail: "must be 2.x" }]);
};

/**
 * Returns the client's previous peer ID, or a new one. Rejects with 401 for a token of another holder; the client then reconnects without
 * it.
 */
export const resolvePeerId = (ctx: ApiContext, holder: string, resume_token: string | undefined): string => {
  if (resume_token === undefined || resume_token === "") return uuid();
  const id = openResumeToken(ctx.encryption, resume_token, holder, ctx.clock.now());
  if (id !== undefined) return id;
  throw new AppError("unauthenticated", "Invalid resume token", {
    validations: [{ field: "resume_token", detail: "it was altered, has expired, or was given for something else" }],
  });
};
