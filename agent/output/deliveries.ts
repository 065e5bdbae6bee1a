/** What `underpass webhooks` prints: JSON for programs, lines for logs, a picture for a person at a terminal. */
import type { Forwarder, Handled } from "../webhooks/forwarder.ts";
import type { Rejected } from "../tunnel.ts";
import { printJson } from "./json-lines.ts";
import { bold, dim, green, harmless, Picture, red, yellow } from "./picture.ts";
import { rejectionText } from "./rejection.ts";

const DELIVERIES_SHOWN = 12;

export interface DeliveryOutput {
  /** What the person reads last. */
  end(rejection?: Rejected): void;
}

/** @param local where deliveries go, as it is shown. */
export function jsonOutput(forwarder: Forwarder, local: string): DeliveryOutput {
  forwarder.on("ready", ({ id, url }) => printJson({ event: "ready", receiverId: id, url, local }));
  forwarder.on("handled", ({ id, receivedAt, outcome, attempt, status, durationMs, problem }) =>
    printJson({ event: "delivery", id, receivedAt, outcome, attempt, status, durationMs, problem }),
  );
  forwarder.on("disconnected", (reason) => printJson({ event: "disconnected", reason }));
  forwarder.on("reconnected", () => printJson({ event: "reconnected" }));
  return {
    end(rejection) {
      if (!rejection) return;
      printJson({ event: "rejected", reason: rejection.reason, message: rejection.message });
    },
  };
}

export function linesOutput(forwarder: Forwarder, local: string): DeliveryOutput {
  const print = (text: string): void => void process.stdout.write(`${text}\n`);
  forwarder.on("ready", ({ url }) => print(`Forwarding ${url} -> ${local}`));
  forwarder.on("handled", (handled) => print(lineOf(handled)));
  forwarder.on("disconnected", (reason) => print(`disconnected: ${reason}; reconnecting`));
  forwarder.on("reconnected", () => print("reconnected"));
  return {
    end(rejection) {
      if (rejection) process.stderr.write(`underpass: ${rejectionText(rejection)}\n`);
    },
  };
}

export function screenOutput(forwarder: Forwarder, local: string): DeliveryOutput {
  let url = "…";
  let state = yellow("connecting");
  let delivered = 0;
  let putAside = 0;
  let shown: Handled[] = [];
  const picture = new Picture(() => [
    bold("underpass webhooks") + dim("   Ctrl+C stops it"),
    "",
    `State       ${state}`,
    `Forwarding  ${bold(url)} -> ${local}`,
    `Delivered   ${delivered}${putAside === 0 ? "" : yellow(`   put aside ${putAside}`)}`,
    "",
    ...shown.map((handled) => colorOf(handled)(lineOf(handled))),
  ]);
  const show = (text: string): void => {
    state = text;
    picture.draw();
  };
  forwarder.on("ready", (receiver) => {
    url = receiver.url;
    show(green("online"));
  });
  forwarder.on("disconnected", (reason) => show(yellow(`reconnecting (${harmless(reason)})`)));
  forwarder.on("reconnected", () => show(green("online")));
  forwarder.on("handled", (handled) => {
    if (handled.outcome === "delivered") delivered += 1;
    if (handled.outcome === "put_aside") putAside += 1;
    // Further attempts of a delivery take the place of the first.
    const others = shown.filter(
      ({ id, attempt }) => attempt > handled.attempt || id !== handled.id,
    );
    shown = [handled, ...others].slice(0, DELIVERIES_SHOWN);
    picture.draw();
  });
  picture.draw();
  return {
    end: (rejection) => picture.end(rejection ? red(rejectionText(rejection)) : "Stopped."),
  };
}

function lineOf({
  id,
  outcome,
  attempt,
  status,
  durationMs,
  problem,
  receivedAt,
}: Handled): string {
  const answer = harmless(status === null ? (problem ?? "no answer") : String(status));
  const what = `${answer} ${harmless(id)} ${durationMs} ms, received ${receivedAt}`;
  switch (outcome) {
    case "delivered":
      return what;
    case "retrying":
      return `${what}; attempt ${attempt}, trying again`;
    case "put_aside":
      return `${what}; put aside after ${attempt} attempts, --since brings it back`;
  }
}

function colorOf({ outcome }: Handled): (text: string) => string {
  return { delivered: green, retrying: yellow, put_aside: red }[outcome];
}
