// Uploads and downloads files of chats. A response means the file is on disk. The type is detected from the content, and a header
// forbids browsers to sniff another one (rules FL-1 to FL-6).
import { t } from "elysia";
import { ANY_TYPE } from "#base/file-signature.ts";
import { formatDisposition } from "#domain/chats/file-name.ts";
import { findFile, storeChatFile } from "#domain/chats/files.ts";
import { Throttle } from "#domain/users/throttle.ts";
import { CHAT_FILE_TYPES, UploadedChatFile } from "#schema/chats/chat-file.ts";
import type { ApiContext } from "../context.ts";
import { receiveFile } from "../files.ts";
import { callers, getUser, type UserCaller } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { tags } from "./paths.ts";

/** Maximum bytes of one upload (specification, "Limits"). */
const MAX_FILE_BYTES = 10_485_760;
const MAX_UPLOADS_PER_MINUTE = 120;
const YEAR_SECONDS = 31_536_000;

export const chatFiles = (ctx: ApiContext) => {
  const uploads = new Throttle(ctx.clock, MAX_UPLOADS_PER_MINUTE);
  return routes({ prefix: "/files" })
    .use(callers)
    .post(
      "",
      async ({ caller, query, request, set }) => {
        uploads.count(caller.user_id);
        const id = await upload(ctx, query.organization, request);
        set.status = 201;
        return { id };
      },
      {
        user: true,
        query: t.Object({ organization: t.String({ format: "uuid", description: "The organization of the chat." }) }),
        response: { 201: UploadedChatFile, ...fails(400, 401, 403, 408, 413, 429, 503) },
        detail: operation({
          tags,
          operationId: "uploadChatFile",
          summary: "Upload a file for a chat",
          description: `The request body is the content of the file, at most ${MAX_FILE_BYTES} bytes. Send its name in \`Content-Disposition: attachment; filename="..."\`. The content type is detected from the content. A file that no message references within 30 days is deleted.`,
          limit: MAX_FILE_BYTES,
          reads: "stream",
          accepts: [ANY_TYPE, ...CHAT_FILE_TYPES],
          headers: {
            "Content-Disposition": {
              required: true,
              description: "Contains the name of the file. Folders in the name are removed.",
              schema: { type: "string" },
              example: 'attachment; filename="notes.txt"',
            },
          },
          scope: "chat:create",
        }),
      },
    )
    .get("/:file", ({ caller, params }) => download(ctx, caller, params.file), {
      user: true,
      params: t.Object({ file: t.String({ format: "uuid", description: "The ID that the upload returned." }) }),
      response: fails(400, 401, 404),
      detail: operation({
        tags,
        operationId: "downloadChatFile",
        summary: "Download a file of a chat",
        description: "Available to the user who uploaded the file and users who can see its chat.",
        answers: [...CHAT_FILE_TYPES],
        access: "owner",
        scope: "chat:read",
      }),
    });
};

/** Rejects a body that is too large with 413 before any other check. */
const upload = async (ctx: ApiContext, organization: string, request: Request): Promise<string> => {
  const blob = await ctx.blobs.put(receiveFile(ctx, request, MAX_FILE_BYTES));
  return storeChatFile(ctx, getUser(request), {
    organization_id: organization.toLowerCase(),
    blob,
    content_type: request.headers.get("content-type"),
    disposition: request.headers.get("content-disposition"),
  });
};

const download = async (ctx: ApiContext, caller: UserCaller, id: string): Promise<Response> => {
  const { hash, name, media_type } = await findFile(ctx, caller, id);
  return new Response(Bun.file(await ctx.blobs.getPath(hash)), {
    headers: {
      "content-type": media_type.startsWith("text/") ? `${media_type}; charset=utf-8` : media_type,
      "content-disposition": formatDisposition(media_type === "application/pdf" ? "attachment" : "inline", name),
      "cache-control": `private, max-age=${YEAR_SECONDS}, immutable`,
      "x-content-type-options": "nosniff",
      "content-security-policy": "default-src 'none'; sandbox",
    },
  });
};
