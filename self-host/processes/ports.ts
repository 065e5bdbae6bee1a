/** Checks that a port is free, before any program is started that needs it. */
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { StartError } from "../errors.ts";
import { getErrorMessage } from "../../shared/error-message.ts";

/** @returns the port; for 0, a free one. */
export async function findUsablePort(host: string, port: number): Promise<number> {
  const probe = createServer();
  try {
    await once(probe.listen(port, host), "listening");
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "EADDRINUSE") {
      throw new StartError(
        `PORT: ${port} is in use by another program on ${host}: stop it, or set PORT to a free port`,
      );
    }
    throw new StartError(
      `HOST, PORT: can't listen on ${host} port ${port}: ${getErrorMessage(error)}; set HOST to an address of this machine, ` +
        "and PORT to a port that this user may use",
    );
  }
  const { port: bound } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, "close");
  return bound;
}
