/** What the outputs of several commands share: how they print that a connection was lost, is retried, and is back. */
import { printJson, type EventPrinter, type Level } from "./output.ts";
import { green, stripControl, yellow } from "./terminal-view.ts";

/** The source of events that every connection to the service has. */
interface ConnectionEvents {
  on(event: "ready" | "reconnected", listener: () => void): unknown;
  on(event: "disconnected", listener: (reason: string) => void): unknown;
  on(event: "retrying", listener: (reason: string, inMs: number) => void): unknown;
}

/** HTTP and TCP tunnels: they have a URL, and their owner can stop and start them. */
interface TunnelEvents extends ConnectionEvents {
  on(event: "ready" | "reconnected", listener: (tunnel: { url: string }) => void): unknown;
  on(event: "disconnected" | "stopped", listener: (explanation: string) => void): unknown;
  on(event: "retrying", listener: (reason: string, inMs: number) => void): unknown;
}

export function printConnectionJson(
  connection: ConnectionEvents,
  print: EventPrinter = printJson,
): void {
  connection.on("disconnected", (reason) => print({ event: "disconnected", reason }));
  connection.on("retrying", (reason, inMs) =>
    print({ event: "retrying", reason, inMs: Math.round(inMs) }),
  );
  connection.on("reconnected", () => print({ event: "reconnected" }));
}

export function printTunnelJson(tunnel: TunnelEvents, print: EventPrinter): void {
  printConnectionJson(tunnel, print);
  tunnel.on("stopped", (explanation) =>
    print({ event: "disconnected", reason: `tunnel_stopped: ${explanation}` }),
  );
}

export function printConnectionLines(
  connection: ConnectionEvents,
  print: (level: Level, text: string) => void,
): void {
  connection.on("disconnected", (reason) =>
    print("warn", `disconnected: ${stripControl(reason)}; reconnecting`),
  );
  connection.on("retrying", (reason, inMs) => {
    const seconds = (inMs / 1000).toFixed(1);
    print("warn", `no connection: ${stripControl(reason)}; next attempt in ${seconds} s`);
  });
}

export function printTunnelLines(
  tunnel: TunnelEvents,
  print: (level: Level, text: string) => void,
): void {
  printConnectionLines(tunnel, print);
  tunnel.on("stopped", (explanation) =>
    print("warn", `${stripControl(explanation)}; waiting until it is started again`),
  );
  tunnel.on("reconnected", ({ url }) => print("info", `reconnected: ${url}`));
}

/** @param show draws the state in the live view. */
export function showConnectionState(
  connection: ConnectionEvents,
  show: (state: string) => void,
): void {
  const showReconnecting = (reason: string): void =>
    show(yellow(`reconnecting (${stripControl(reason)})`));
  connection.on("ready", () => show(green("online")));
  connection.on("reconnected", () => show(green("online")));
  connection.on("disconnected", showReconnecting);
  connection.on("retrying", showReconnecting);
}

export function showTunnelState(tunnel: TunnelEvents, show: (state: string) => void): void {
  showConnectionState(tunnel, show);
  tunnel.on("stopped", (explanation) =>
    show(yellow(`stopped (${stripControl(explanation)}); waiting until it is started again`)),
  );
}
