/**
 * The events that several commands print: a connection was lost, is retried, and is back; a tunnel was stopped, or has
 * other gates.
 */
import { nameKeys, type OptionSource } from "../config/option-keys.ts";
import { describeGates, describeUnchangedGates, type TunnelGates } from "../gates/tunnel-gates.ts";
import { FailedAttempts } from "./failed-attempts.ts";
import { printEvent, type EventPrinter, type Level } from "./output.ts";
import { green, yellow } from "./format/colors.ts";
import { formatComingExpiry } from "./format/format-relative-time.ts";
import { escapeControls } from "../../shared/text/escape-controls.ts";
import { PROGRAM } from "../program.ts";

/** The source of events that every connection to the service has. */
interface ConnectionEvents {
  on(event: "ready" | "reconnected", listener: () => void): unknown;
  on(event: "disconnected", listener: (reason: string) => void): unknown;
  on(event: "retrying", listener: (reason: string, inMs: number) => void): unknown;
}

interface ServedTunnel {
  url: string;
  /** RFC 3339. */
  expiresAt?: string | undefined;
}

/** HTTP and TCP tunnels: they have a URL, and their owner can stop and start them. */
interface TunnelEvents extends ConnectionEvents {
  on(event: "ready" | "reconnected", listener: (tunnel: ServedTunnel) => void): unknown;
  on(event: "disconnected", listener: (reason: string) => void): unknown;
  on(event: "retrying", listener: (reason: string, inMs: number) => void): unknown;
  on(event: "notice", listener: (message: string) => void): unknown;
  on(event: "localServer", listener: (isListening: boolean, message: string) => void): unknown;
  on(event: "gates", listener: (gates: TunnelGates) => void): unknown;
  on(event: "stopped", listener: (explanation: string, name: string | undefined) => void): unknown;
}

/** @param name of the tunnel; undefined when the server has not told it. */
export function describeStop(explanation: string, name = "NAME"): string {
  return `${explanation}; waiting until you run: ${PROGRAM} tunnels start ${name}`;
}

export function printConnectionJson(
  connection: ConnectionEvents,
  print: EventPrinter = printEvent,
): void {
  connection.on("disconnected", (reason) => print({ event: "disconnected", reason }));
  connection.on("retrying", (reason, inMs) =>
    print({ event: "retrying", reason, inMs: Math.round(inMs) }),
  );
  connection.on("reconnected", () => print({ event: "reconnected" }));
}

export function printTunnelJson(
  tunnel: TunnelEvents,
  print: EventPrinter,
  source: OptionSource,
): void {
  printConnectionJson(tunnel, print);
  printNotices(tunnel, (message) => print({ event: "notice", message }), source);
  tunnel.on("localServer", (_isListening, message) => print({ event: "notice", message }));
  tunnel.on("stopped", (explanation) =>
    print({ event: "disconnected", reason: `tunnel_stopped: ${explanation}` }),
  );
  tunnel.on("gates", ({ names }) => print({ event: "gates", gates: names }));
}

/** A server that is down for a night must not fill the log: the longer it takes, the fewer attempts are printed. */
export function printConnectionLines(
  connection: ConnectionEvents,
  print: (level: Level, text: string) => void,
): void {
  const attempts = new FailedAttempts();
  const printRetry = createRetryPrinter(print, attempts);
  connection.on("ready", () => attempts.clear());
  connection.on("reconnected", () => attempts.clear());
  connection.on("disconnected", (reason) => print("warn", `disconnected: ${reason}; reconnecting`));
  connection.on("retrying", printRetry);
}

/** @returns a function that prints a failed attempt: a warning for those that `attempts` selects, and debug lines for the rest. */
export function createRetryPrinter(
  print: (level: Level, text: string) => void,
  attempts = new FailedAttempts(),
): (reason: string, inMs: number) => void {
  return (reason, inMs) => {
    const level = attempts.add(reason) ? "warn" : "debug";
    const failed = attempts.count > 2 ? `${attempts.count} attempts failed, ` : "";
    const seconds = (inMs / 1000).toFixed(1);
    print(level, `no connection: ${reason}; ${failed}next attempt in ${seconds} s`);
  };
}

export function printTunnelLines(
  tunnel: TunnelEvents,
  print: (level: Level, text: string) => void,
  source: OptionSource,
): void {
  printConnectionLines(tunnel, print);
  tunnel.on("stopped", (explanation, name) => print("warn", describeStop(explanation, name)));
  tunnel.on("ready", ({ expiresAt }) => {
    if (expiresAt !== undefined)
      print("info", `The tunnel expires ${formatComingExpiry(expiresAt, Date.now())}`);
  });
  tunnel.on("reconnected", ({ url }) => print("info", `reconnected: ${url}`));
  tunnel.on("gates", (gates) => print("info", formatGates(gates, source)));
  printNotices(tunnel, (message) => print("warn", message), source);
  tunnel.on("localServer", (_isListening, message) => print("info", message));
}

function printNotices(
  tunnel: TunnelEvents,
  print: (message: string) => void,
  source: OptionSource,
) {
  tunnel.on("notice", (message) => print(source === "file" ? nameKeys(message) : message));
}

function formatGates(gates: TunnelGates, source: OptionSource): string {
  const visitors = describeGates(gates);
  if (visitors === undefined) return "visitors need no password, sign-in or allowed address now";
  const unchanged = describeUnchangedGates(gates, source);
  return `Visitors are served only ${visitors}${unchanged === undefined ? "" : `; ${unchanged}`}`;
}

/** @param show draws the state in the live view. */
export function showConnectionState(
  connection: ConnectionEvents,
  show: (state: string) => void,
): void {
  const showReconnecting = (reason: string): void =>
    show(yellow(`reconnecting (${escapeControls(reason)})`));
  connection.on("ready", () => show(green("online")));
  connection.on("reconnected", () => show(green("online")));
  connection.on("disconnected", showReconnecting);
  connection.on("retrying", showReconnecting);
}
