// Keys of workers: `<prefix>-<secret>`, of which the prefix and a hash of the secret are stored. A worker sends its key where a user would
// send a session token (rule PV-13).
import { Elysia } from "elysia";
import { AppError } from "#base/errors.ts";
import { isSameDigest, sha256 } from "#base/ids.ts";
import { findProvisionerKeyByPrefix, type ProvisionerKeyRow } from "#db/templates/provisioners.ts";
import { requireCreatorAdmin } from "#domain/provisioners/keys.ts";
import type { ApiContext } from "../context.ts";
import { findCredential } from "../http/identify.ts";

const INVALID_KEY = new AppError("unauthenticated", "The provisioner key is missing or not valid.");

/**
 * Returns the key that was sent. Rejects with 401 when it is missing or wrong, or when its creator has lost access. Takes the same time for
 * a wrong secret and an unknown key.
 */
const findKey = async (request: Request, ctx: KeyContext): Promise<ProvisionerKeyRow> => {
  const { store, accessUrl } = ctx;
  const token = findCredential(request, accessUrl)?.token ?? "";
  const [, prefix, secret] = /^([A-Za-z0-9]{10})-([A-Za-z0-9]{43})$/.exec(token) ?? [];
  if (prefix === undefined || secret === undefined) throw INVALID_KEY;
  const row = await store.get(findProvisionerKeyByPrefix({ prefix }));
  if (!isSameDigest(sha256(secret), row?.secret_hash ?? sha256("")) || !row) throw INVALID_KEY;
  await requireCreatorAdmin(ctx, row);
  return row;
};

type KeyContext = Pick<ApiContext, "store" | "accessUrl">;

type WithRequest = { request: Request };

/** Route option `worker: true`: gives the handler the worker's `key`. Checked before parameters, so an anonymous caller always gets 401. */
export const workerKeys = (ctx: KeyContext) => {
  const keys = new WeakMap<Request, ProvisionerKeyRow>();
  return new Elysia({ name: "worker-keys", seed: keys }).macro({
    worker: {
      detail: { security: [{ provisioner_key: [] }] },
      transform: async ({ request }: WithRequest) => void keys.set(request, await findKey(request, ctx)),
      resolve: ({ request }: WithRequest) => {
        const key = keys.get(request);
        if (!key) throw INVALID_KEY;
        return { key };
      },
    },
  });
};
