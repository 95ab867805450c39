// What the server must know of a subscription to seal messages for it. For the page and for the service worker.

const textOf = (bytes: ArrayBuffer | null): string =>
  btoa(String.fromCharCode(...new Uint8Array(bytes ?? new ArrayBuffer())))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");

/** The body of `POST /users/me/webpush/subscription`; keys as base64url. */
export const subscriptionBody = (
  one: PushSubscription,
): { endpoint: string; auth_key: string; p256dh_key: string } => ({
  endpoint: one.endpoint,
  auth_key: textOf(one.getKey("auth")),
  p256dh_key: textOf(one.getKey("p256dh")),
});
