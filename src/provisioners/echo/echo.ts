// The provisioner for tests and demonstrations. It creates nothing, logs the lines in the template, and then succeeds, fails or hangs.
import { waitForAbort } from "#base/retry.ts";
import { ProvisionError, type Provisioner, type ProvisionRequest, type Report } from "../provisioner.ts";

export class EchoProvisioner implements Provisioner {
  readonly name = "echo";

  async run(
    { manifest, transition, state }: ProvisionRequest,
    report: Report,
    signal: AbortSignal,
  ): Promise<{ state: string | null }> {
    const { logs = [], error, hang } = manifest.echo ?? {};
    for (const line of logs) report.log("info", `Echo ${transition}`, line);
    // Stopping and deleting always succeed, so that a test can clean up.
    if (transition !== "start") return { state: null };
    if (hang) await waitForAbort(signal);
    signal.throwIfAborted();
    if (error !== undefined) throw new ProvisionError(error);
    return { state: state ?? "echo" };
  }

  /** Behaves like a start. */
  async plan(request: ProvisionRequest, report: Report, signal: AbortSignal): Promise<undefined> {
    await this.run({ ...request, transition: "start" }, report, signal);
  }
}
