// Explains network errors to people instead of showing the system's error code. Pure.

const MESSAGES: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nothing listens there",
  ConnectionRefused: "nothing listens there",
  ECONNRESET: "the connection broke off",
  ConnectionClosed: "the connection broke off",
  ENOTFOUND: "its name leads nowhere",
  EAI_AGAIN: "its name cannot be looked up now",
  EHOSTUNREACH: "no way leads there",
  ENETUNREACH: "no way leads there",
  ETIMEDOUT: "there is no answer",
  EPROTO: "it does not speak TLS there",
};

/** Returns an explanation of a network error; if none exists, the error's own message, or its code if the message is empty. */
export const describeNetworkError = (error: unknown): string => {
  const { code, message } = (typeof error === "object" && error !== null ? error : { message: error }) as {
    readonly code?: unknown;
    readonly message?: unknown;
  };
  const known = MESSAGES[String(code)];
  if (known !== undefined) return known;
  if (typeof message === "string" && message !== "") return message;
  return typeof code === "string" && code !== "" ? code : "no connection";
};
