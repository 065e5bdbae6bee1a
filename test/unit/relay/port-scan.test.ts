/** A scan of every port of a relay shows nothing but its own port and those of connected agents. */
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

/** Nothing answers there, so this asks the system instead. */
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

async function openPorts(
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
  expect(await openPorts(ports, acceptsTcp)).toEqual([]);
  expect(await openPorts(ports, isUdpBound)).toEqual([]);
  {
    await using tunnel = new RelayAgent(url, await relay.tunnelTicket({ port: forTcp }));
    await tunnel.welcome("tunnel");
    await using network = new RelayAgent(url, await relay.networkTicket({ port: forUdp }));
    await network.welcome("network");
    expect(await openPorts(ports, acceptsTcp)).toEqual([forTcp]);
    expect(await openPorts(ports, isUdpBound)).toEqual([forUdp]);
  }
  await vi.waitFor(async () => {
    expect(await openPorts(ports, acceptsTcp)).toEqual([]);
    expect(await openPorts(ports, isUdpBound)).toEqual([]);
  }, WAIT_OPTIONS);
});
