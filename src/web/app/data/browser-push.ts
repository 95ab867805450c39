// This browser's push state: its subscription and the notifications it shows.

export const isPushSupported = (): boolean =>
  "serviceWorker" in navigator && "PushManager" in window && "Notification" in window;

export const getSubscription = async (): Promise<PushSubscription | null> => {
  const registration = await navigator.serviceWorker.getRegistration();
  return (await registration?.pushManager.getSubscription()) ?? null;
};

/** Unsubscribes after signing out. The server learns this from the browser's push service. */
export const unsubscribeHere = async (): Promise<void> => {
  if (!isPushSupported()) return;
  await (await getSubscription())?.unsubscribe();
  const registration = await navigator.serviceWorker.getRegistration();
  for (const notification of (await registration?.getNotifications()) ?? []) notification.close();
};
