// Explains network errors to people instead of showing the system's error code. Pure.

const MESSAGES: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nothing listens there",
  ConnectionRefused: "nothing listens there",
  ECONNRESET: "the connection was closed",
  ConnectionClosed: "the connection was closed",
  ENOTFOUND: "its name leads nowhere",
  EAI_AGAIN: "its name cannot be looked up now",
  EHOSTUNREACH: "no network route leads there",
  ENETUNREACH: "no network route leads there",
  ETIMEDOUT: "it does not answer",
  EPROTO: "it does not speak TLS",
};

/** Returns an explanation of a network error. For unknown codes, returns the error's own message, or the code if the message is empty. */
export const describeNetworkError = (error: unknown): string => {
  const { code, message } = (typeof error === "object" && error !== null ? error : { message: error }) as {
    readonly code?: unknown;
    readonly message?: unknown;
  };
  const explanation = MESSAGES[String(code)];
  if (explanation !== undefined) return explanation;
  if (typeof message === "string" && message !== "") return message;
  return typeof code === "string" && code !== "" ? code : "no connection";
};
