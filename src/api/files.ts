// Uploads that templates are created from. The body is streamed to disk and rejected as soon as it exceeds the limit. A response means the
// file is on disk (rules TP-1 to TP-4).
import { t } from "elysia";
import { AppError, forbidden, invalidField } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import { PieceCounter, ProgressWatch } from "#base/network/body-pieces.ts";
import { canUpload, findOrInsertFile, loadReadableFile } from "#domain/templates/uploads.ts";
import { ARCHIVE_TYPES, type ArchiveType, UploadedFile } from "#schema/templates/file.ts";
import { streamZip } from "#src/provisioners/archive-convert.ts";
import { ArchiveError } from "#src/provisioners/archive-entry.ts";
import type { ApiContext } from "./context.ts";
import { MAX_UPLOAD_BYTES, makeTooManyChunksError, tooLarge } from "./http/body/body.ts";
import { DISK, makeSlowBodyError, reserveStreamedBody, type StreamedReservation } from "./http/body/budget.ts";
import { callers, getUser, refreshIdentity, type UserCaller } from "./http/caller.ts";
import { operation } from "./http/operation.ts";
import { fails } from "./http/responses.ts";
import { routes } from "./http/routes.ts";

const tags = ["Templates"];

export const files = (ctx: ApiContext) =>
  routes({ prefix: "/files" })
    .use(callers)
    .post(
      "",
      async ({ request, status }) => {
        const { id, isNew } = await upload(ctx, request);
        return status(isNew ? 201 : 200, { hash: id });
      },
      {
        user: true,
        response: { 200: UploadedFile, 201: UploadedFile, ...fails(400, 401, 403, 408, 413, 415, 503) },
        detail: operation({
          tags,
          operationId: "uploadFile",
          summary: "Upload a file",
          description: `The request body is a tar or zip archive with a template.yaml, at most ${MAX_UPLOAD_BYTES} bytes. If the same user uploads the same content again, returns the same ID with 200.`,
          limit: MAX_UPLOAD_BYTES,
          reads: "stream",
          rate: "upload",
          accepts: [...ARCHIVE_TYPES],
          access: "admins",
          scope: "file:create",
        }),
      },
    )
    .get("/:file", ({ caller, params, query }) => download(ctx, caller, params.file, query.format), {
      user: true,
      params: t.Object({ file: t.String({ format: "uuid", description: "The ID that the upload returned." }) }),
      query: t.Object({
        format: t.Optional(
          t.String({ description: "`zip` converts a tar archive. If absent, the file is returned as uploaded." }),
        ),
      }),
      response: fails(400, 401, 404),
      detail: operation({
        tags,
        operationId: "downloadFile",
        summary: "Download a file",
        description: "Available to the user who uploaded the file and template administrators.",
        answers: [...ARCHIVE_TYPES],
        scope: "file:read",
      }),
    });

/** Stores the body. Rejects with 403 for callers who cannot create templates anywhere, and with 413 and 415 as declared. */
const upload = async (ctx: ApiContext, request: Request): Promise<{ id: string; isNew: boolean }> => {
  await requireUploader(ctx, request);
  const mimetype = parseArchiveType(request.headers.get("content-type"));
  const blob = await ctx.blobs.put(receiveFile(ctx, request, MAX_UPLOAD_BYTES));
  if (blob.size === 0) throw new AppError("invalid", "The request body is empty.");
  const caller = await requireUploader(ctx, request);
  return findOrInsertFile(ctx.store, {
    id: uuid(),
    hash: blob.hash,
    size: blob.size,
    mimetype,
    created_by: caller.user_id,
    created_at: ctx.clock.now(),
  });
};

const requireUploader = async ({ store }: ApiContext, request: Request): Promise<UserCaller> => {
  const caller = getUser(request);
  if (!(await canUpload(store, caller))) throw forbidden("Only template administrators can upload files.");
  return caller;
};

const parseArchiveType = (header: string | null): ArchiveType => {
  const name = (header ?? "").split(";")[0]?.trim().toLowerCase();
  const found = ARCHIVE_TYPES.find((type) => type === name);
  if (found) return found;
  throw new AppError("unsupported_media", "The content type is not supported.", {
    detail: `Send the archive as ${ARCHIVE_TYPES.join(" or ")}.`,
  });
};

/**
 * Yields the body as it arrives. Rejects with 413 as soon as it is known to exceed the limit. After a slow body, `getUser` returns the
 * sender with the rights of that moment.
 */
export async function* limitBody(request: Request, limit: number): AsyncGenerator<Uint8Array> {
  if (Number(request.headers.get("content-length") ?? 0) > limit) throw tooLarge(limit);
  const pieces = new PieceCounter();
  let size = 0;
  for await (const chunk of request.body ?? []) {
    size += chunk.byteLength;
    if (size > limit) throw tooLarge(limit);
    if (pieces.add(chunk)) throw makeTooManyChunksError();
    yield chunk;
  }
  await refreshIdentity(request);
}

/** Like `limitBody`. Rejects with 408 when the sender is too slow while memory for bodies is short. */
export async function* limitSlowBody(
  { clock }: Pick<ApiContext, "clock">,
  request: Request,
  limit: number,
  { isShort }: StreamedReservation,
): AsyncGenerator<Uint8Array> {
  // Rejects the piece that is awaited. A race with one promise for all pieces would keep each piece in memory until the body has ended.
  let fail: (error: Error) => void = () => {};
  const progress = new ProgressWatch(clock, () => {
    if (isShort()) fail(makeSlowBodyError());
  });
  const pieces = progress.watch(limitBody(request, limit));
  try {
    for (;;) {
      const next = Promise.withResolvers<IteratorResult<Uint8Array, void>>();
      fail = next.reject;
      pieces.next().then(next.resolve, next.reject);
      const { done, value } = await next.promise;
      if (done) return;
      yield value;
    }
  } finally {
    progress.stop();
    // Not awaited, because a read that still waits for the sender ends only with the connection.
    pieces.return(undefined).catch(() => {});
  }
}

/** Like `limitSlowBody`, for a body that is written to the disk: the part that waits in memory is counted. Rejects with 503 beyond the budget. */
export async function* receiveFile(ctx: ApiContext, request: Request, limit: number): AsyncGenerator<Uint8Array> {
  const sender = { user_id: getUser(request).user_id, address: ctx.addresses.of(request) };
  const reservation = reserveStreamedBody(request, { receiver: DISK, ...sender });
  try {
    yield* limitSlowBody(ctx, request, limit, reservation);
  } finally {
    reservation.release();
  }
}

const download = async (ctx: ApiContext, caller: UserCaller, id: string, format: string | undefined) => {
  if (format !== undefined && format !== "" && format !== "zip") throw invalidField("format", "must be zip or absent");
  const file = await loadReadableFile(ctx.store, id, caller);
  const path = await ctx.blobs.getPath(file.hash);
  const convertsToZip = format === "zip" && file.mimetype === "application/x-tar";
  const type = convertsToZip ? "application/zip" : file.mimetype;
  const extension = type === "application/zip" ? "zip" : "tar";
  return new Response(convertsToZip ? await streamZip(path).catch(rethrowArchiveError) : Bun.file(path), {
    headers: {
      "content-type": type,
      // Never rendered by a browser, regardless of its content.
      "content-disposition": `attachment; filename="${file.id}.${extension}"`,
      "x-content-type-options": "nosniff",
      "content-security-policy": "default-src 'none'; sandbox",
    },
  });
};

const rethrowArchiveError = (error: unknown): never => {
  if (!(error instanceof ArchiveError)) throw error;
  throw new AppError("invalid", "The file cannot be converted.", { detail: error.message });
};
