/** Checks that a port is free, before any program is started that needs it. */
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { StartError } from "../errors.ts";
import { getErrorCode, getErrorMessage } from "../../shared/error-message.ts";

interface SettingNames {
  host: string;
  port: string;
}

/**
 * @param host undefined: all addresses.
 * @param names the settings of the host and the port, for errors.
 * @returns the port; for 0, a free one.
 */
export async function findUsablePort(
  host: string | undefined,
  port: number,
  names: SettingNames = { host: "HOST", port: "PORT" },
): Promise<number> {
  const place = host ?? "all addresses";
  const probe = createServer();
  try {
    await once(probe.listen(port, host), "listening");
  } catch (error) {
    const code = getErrorCode(error);
    if (code === "EADDRINUSE") {
      throw new StartError(
        `${names.port}: ${port} is in use by another program on ${place}: stop it, or set ${names.port} to a free port`,
      );
    }
    throw new StartError(
      `${names.host}, ${names.port}: can't listen on ${place} port ${port}: ${getErrorMessage(error)}; set ${names.host} to an ` +
        `address of this machine, and ${names.port} to a port that this user may use`,
    );
  }
  const { port: bound } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, "close");
  return bound;
}
