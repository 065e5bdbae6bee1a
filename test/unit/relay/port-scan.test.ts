/** A scan of a relay's ports finds only its own port and those of connected agents. */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { connect } from "node:net";
import { expect, test, vi } from "vitest";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";
import { RelayAgent } from "../../harness/relay/relay-agent.ts";
import { startTestRelay } from "../../harness/relay/test-relay.ts";

async function acceptsTcp(port: number): Promise<boolean> {
  const socket = connect({ port, host: "127.0.0.1" });
  try {
    await once(socket, "connect");
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

/** Tries to bind the port, because a bound port does not answer unexpected datagrams. */
async function isUdpBound(port: number): Promise<boolean> {
  const socket = createSocket("udp4");
  try {
    const listening = once(socket, "listening");
    socket.bind(port, "127.0.0.1");
    await listening;
    return false;
  } catch {
    return true;
  } finally {
    socket.close();
  }
}

async function findOpenPorts(
  ports: number[],
  isOpen: (port: number) => Promise<boolean>,
): Promise<number[]> {
  const open = await Promise.all(ports.map(isOpen));
  return ports.filter((_, at) => open[at]);
}

test("a port is open only while an agent serves it, for its protocol alone", async () => {
  await using relay = await startTestRelay();
  const [, , forTcp = 0, forUdp = 0] = relay.ports;
  const { ports, url } = relay;
  expect(await findOpenPorts(ports, acceptsTcp)).toEqual([]);
  expect(await findOpenPorts(ports, isUdpBound)).toEqual([]);
  {
    await using tunnel = new RelayAgent(url, await relay.tunnelTicket({ port: forTcp }));
    await tunnel.waitForWelcome("tunnel");
    await using network = new RelayAgent(url, await relay.networkTicket({ port: forUdp }));
    await network.waitForWelcome("network");
    expect(await findOpenPorts(ports, acceptsTcp)).toEqual([forTcp]);
    expect(await findOpenPorts(ports, isUdpBound)).toEqual([forUdp]);
  }
  await vi.waitFor(async () => {
    expect(await findOpenPorts(ports, acceptsTcp)).toEqual([]);
    expect(await findOpenPorts(ports, isUdpBound)).toEqual([]);
  }, WAIT_OPTIONS);
});
