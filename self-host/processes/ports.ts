/** Whether a port can be had, asked before anything is started that needs it. */
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { messageOf, StartFailure } from "../failure.ts";

/** @returns the port, which for 0 is a free one. */
export async function usablePort(host: string, port: number): Promise<number> {
  const probe = createServer();
  try {
    await once(probe.listen(port, host), "listening");
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "EADDRINUSE") {
      throw new StartFailure(`PORT: ${port} is in use by another program on ${host}`);
    }
    throw new StartFailure(`HOST, PORT: can't listen on ${host} port ${port}: ${messageOf(error)}`);
  }
  const { port: bound } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, "close");
  return bound;
}
