// Runs in the page. Simulates a push subscription, because the browser cannot reach its vendor's push service.
export const simulateSubscription = ({ endpoint, auth, p256dh }) => {
  window.permissionRequests = 0;
  const requestPermission = Notification.requestPermission;
  Notification.requestPermission = () => {
    window.permissionRequests += 1;
    return requestPermission.call(Notification);
  };
  const decodeBase64Url = (text) =>
    Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0)).buffer;
  const getSubscription = () =>
    sessionStorage.getItem("subscribed") === null
      ? null
      : {
          endpoint,
          getKey: (name) => decodeBase64Url(name === "auth" ? auth : p256dh),
          unsubscribe: async () => {
            sessionStorage.removeItem("subscribed");
            return true;
          },
        };
  PushManager.prototype.subscribe = async (options) => {
    sessionStorage.setItem("subscribed", String(new Uint8Array(options.applicationServerKey)[0]));
    return getSubscription();
  };
  PushManager.prototype.getSubscription = async () => getSubscription();
};
