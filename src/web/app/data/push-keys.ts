// The subscription data that the server needs to encrypt push messages. Shared by the page and the service worker.

const encodeBase64Url = (bytes: ArrayBuffer | null): string =>
  btoa(String.fromCharCode(...new Uint8Array(bytes ?? new ArrayBuffer())))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");

/** Builds the body of `POST /users/me/webpush/subscription`; keys as base64url. */
export const toSubscriptionBody = (
  subscription: PushSubscription,
): { endpoint: string; auth_key: string; p256dh_key: string } => ({
  endpoint: subscription.endpoint,
  auth_key: encodeBase64Url(subscription.getKey("auth")),
  p256dh_key: encodeBase64Url(subscription.getKey("p256dh")),
});
