// What the server must know of a subscription to seal messages for it. For the page and for the service worker.

const encodeBase64Url = (bytes: ArrayBuffer | null): string =>
  btoa(String.fromCharCode(...new Uint8Array(bytes ?? new ArrayBuffer())))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");

/** The body of `POST /users/me/webpush/subscription`; keys as base64url. */
export const subscriptionBody = (
  one: PushSubscription,
): { endpoint: string; auth_key: string; p256dh_key: string } => ({
  endpoint: one.endpoint,
  auth_key: encodeBase64Url(one.getKey("auth")),
  p256dh_key: encodeBase64Url(one.getKey("p256dh")),
});
