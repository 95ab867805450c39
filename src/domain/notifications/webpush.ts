// Web push subscriptions of users' browsers. Each belongs to the session that made it and ends with it. The URL comes from the user, so it
// must be https at a permitted address, and each user can have only a few (rule NO-8).
import { toSealContext } from "#actors/notifications/push.ts";
import { conflict, forbidden, invalidField, notFound } from "#base/errors.ts";
import { sha256, uuid } from "#base/ids.ts";
import {
  deleteSubscription,
  findSubscriptionAt,
  insertSubscription,
  listSubscriptions,
} from "#db/notifications/deliveries.ts";
import { findKey, guardKey } from "#db/users/api-keys.ts";
import { guardUser } from "#db/users/users.ts";
import type { WebpushSubscription } from "#schema/notifications/notification.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { isPushKeys } from "#src/notify/push.ts";
import type { DomainContext } from "../context.ts";
import { isSignIn } from "../users/keys.ts";

/** Maximum browsers per user. */
const MAX_SUBSCRIPTIONS = 10;

/**
 * Stores a subscription. A known URL gets the new keys and belongs to this session from now on. Rejects with 403 unless the caller's key is
 * a session, with 400 for an invalid target, and with 409 for too many subscriptions.
 */
export const subscribe = async (
  { store, clock, encryption, pushOutbound }: DomainContext,
  user_id: string,
  { key_id }: UserCaller,
  { endpoint, auth_key, p256dh_key }: WebpushSubscription,
): Promise<void> => {
  const key = await store.get(findKey({ id: key_id }));
  if (!key || !isSignIn(key))
    throw forbidden("You must be signed in. API tokens cannot subscribe to push notifications.");
  const url = URL.canParse(endpoint) ? new URL(endpoint) : undefined;
  if (url?.protocol !== "https:" || url.username + url.password !== "") {
    throw invalidField("endpoint", "must be an https URL");
  }
  if (!isPushKeys({ p256dh: p256dh_key, auth: auth_key })) throw invalidField("p256dh_key", "is not a browser's key");
  const refusal = await pushOutbound.findRefusal(url);
  if (refusal !== undefined) throw invalidField("endpoint", refusal);
  const endpoint_hash = sha256(endpoint);
  const now = clock.now();
  const [subscriptions, existing] = await Promise.all([
    store.all(listSubscriptions({ user_id, now })),
    store.get(findSubscriptionAt({ user_id, endpoint_hash })),
  ]);
  const content = JSON.stringify({ endpoint, auth: auth_key, p256dh: p256dh_key });
  // Each page load registers its browser again.
  const isReadable = existing?.sealed.startsWith(encryption.prefix) ?? false;
  if (
    isReadable &&
    existing?.key_id === key_id &&
    encryption.open(existing.sealed, toSealContext(existing.id)) === content
  )
    return;
  if (!existing && subscriptions.length >= MAX_SUBSCRIPTIONS)
    throw conflict(`You can have at most ${MAX_SUBSCRIPTIONS} browsers. Remove one first.`);
  const id = uuid();
  const sealed = encryption.seal(content, toSealContext(id));
  await store.commit([
    guardUser({ id: user_id }),
    guardKey({ id: key_id, now }),
    ...(existing ? [deleteSubscription(existing.id)] : []),
    insertSubscription({ id, user_id, key_id, endpoint_hash, sealed, created_at: now }),
  ]);
};

/** Removes the subscription with this URL. Rejects with 404 if it does not exist. */
export const unsubscribe = async ({ store }: DomainContext, user_id: string, endpoint: string): Promise<void> => {
  const found = await store.get(findSubscriptionAt({ user_id, endpoint_hash: sha256(endpoint) }));
  if (!found) throw notFound();
  await store.commit([deleteSubscription(found.id)]);
};
