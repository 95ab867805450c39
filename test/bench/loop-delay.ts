// The delay of the server's event loop, from the server's own metrics.

/** Returns the delays in milliseconds since the last call, as the server has measured them. */
export const readLoopDelay = async (metrics: string): Promise<Record<"p50" | "p99" | "max", number>> => {
  const text = await (await fetch(metrics)).text();
  const parseQuantile = (quantile: string): number =>
    1000 *
    Number(new RegExp(`^slipway_event_loop_delay_seconds\\{quantile="${quantile}"\\} (\\S+)`, "m").exec(text)?.[1]);
  return { p50: parseQuantile("0.5"), p99: parseQuantile("0.99"), max: parseQuantile("1") };
};
