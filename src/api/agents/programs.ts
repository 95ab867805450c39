// Serves the agent program and the script that installs it on a machine. Open to anonymous callers, because the machine has no credential
// yet; nothing here is secret (rules TF-13, TF-14).
import { t } from "elysia";
import { notFound } from "#base/errors.ts";
import { PackedPrograms } from "#domain/agents/packed-programs.ts";
import { findAgentProgram, listAgentPrograms } from "#domain/agents/programs.ts";
import { INIT_ARCHITECTURES, INIT_SYSTEMS, renderInitScript } from "#src/provisioners/terraform/init-script.ts";
import type { ApiContext } from "../context.ts";
import { chooseEncoding, matchesEtag } from "../http/encoding.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const tags = ["Agents"];
const CHECKSUMS_FILE = "SHA256SUMS";

const systemParams = t.Object({
  os: t.Union(
    INIT_SYSTEMS.map((one) => t.Literal(one)),
    { description: "The operating system." },
  ),
  arch: t.Union(
    INIT_ARCHITECTURES.map((one) => t.Literal(one)),
    { description: "The CPU architecture." },
  ),
});

const textResponse = (content: string, type = "text/plain; charset=utf-8"): Response =>
  new Response(content, { headers: { "content-type": type } });

const scriptOptions = {
  params: systemParams,
  response: { 200: t.String({ description: "A shell script, or a PowerShell script for Windows." }), ...fails(400) },
  detail: operation({
    tags,
    operationId: "getInitScript",
    access: "anyone",
    summary: "Get the agent's install script",
    description:
      "Returns a script that downloads the agent program, sets CODER_AGENT_URL and starts it. The script reads the token from CODER_AGENT_TOKEN.",
    security: [],
    answers: ["text/plain"],
  }),
};

/** Routes below the root of the access URL, where workspace scripts look for them. */
export const agentProgramFiles = (ctx: ApiContext) => {
  const packedPrograms = new PackedPrograms(ctx.config.data_dir);
  return routes()
    .get(
      "/bin/:file",
      async ({ params: { file }, request }) => {
        if (file === CHECKSUMS_FILE) {
          const programs = await listAgentPrograms(ctx.config);
          return textResponse([...programs].map(([name, { sha256 }]) => `${sha256}  ${name}\n`).join(""));
        }
        const program = await findAgentProgram(ctx.config, file);
        if (!program) throw notFound();
        const etag = `"${program.sha256}"`;
        const headers = {
          etag,
          "cache-control": "no-cache",
          "content-type": "application/octet-stream",
          vary: "accept-encoding",
          "x-original-content-length": String(program.size),
        };
        // Editor plug-ins identify their copy by its SHA-1.
        const tags = [etag, `"${program.sha256}-gzip"`, `"${program.sha1}"`];
        if (tags.some((tag) => matchesEtag(request, tag))) {
          return new Response(null, { status: 304, headers });
        }
        const encoding = chooseEncoding(request.headers.get("accept-encoding"), ["gzip"] as const);
        const packedPath = encoding && packedPrograms.find(program);
        if (!packedPath) return new Response(Bun.file(program.path), { headers });
        const packedHeaders = { ...headers, etag: `"${program.sha256}-${encoding}"`, "content-encoding": encoding };
        return new Response(Bun.file(packedPath), { headers: packedHeaders });
      },
      {
        params: t.Object({
          file: t.String({ description: "`slipway-<os>-<arch>`, or `coder-<os>-<arch>`, or `SHA256SUMS`." }),
        }),
        response: {
          200: t.Any({ description: "The program, or the SHA-256 checksums of all programs." }),
          ...fails(404),
        },
        detail: operation({
          tags,
          operationId: "downloadAgentProgram",
          access: "anyone",
          summary: "Download the agent program",
          description:
            "Available for linux, linux-musl, darwin and windows on amd64 and arm64, if this server has the program. The ETag is the SHA-256 checksum; If-None-Match may also contain the SHA-1 checksum. There is no `.asc` signature; SHA256SUMS contains the checksums.",
          security: [],
          answers: ["application/octet-stream"],
        }),
      },
    )
    .get(
      "/init-script/:os/:arch",
      ({ params: { os, arch } }) => textResponse(renderInitScript(os, arch, ctx.accessUrl.href)),
      scriptOptions,
    );
};

/** `GET init-script/{os}/{arch}`, also served under the API. */
export const initScripts = (ctx: ApiContext) =>
  routes().get(
    "/init-script/:os/:arch",
    ({ params: { os, arch } }) => textResponse(renderInitScript(os, arch, ctx.accessUrl.href)),
    scriptOptions,
  );
