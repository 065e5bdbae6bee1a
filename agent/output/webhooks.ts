/** The output of `underpass webhooks`: JSON for programs, lines for logs, a live view for a person at a terminal. */
import type { Forwarder, DeliveryAttempt } from "../webhooks/forwarder.ts";
import { FailedAttempts } from "./failed-attempts.ts";
import { TerminalView } from "./terminal-view.ts";
import { bold, dim, green, red, yellow } from "./format/colors.ts";
import { escapeControls, escapeControlsInLines } from "../../shared/text/escape-controls.ts";
import {
  printRejectionJson,
  printRejectionLines,
  formatRejection,
  GENERAL_ADVICE,
  printEvent,
  createLinePrinter,
  type Advice,
  type Level,
  type Output,
} from "./output.ts";
import { PROGRAM } from "../program.ts";

const DELIVERIES_SHOWN = 12;
const ADVICE: Advice = {
  ...GENERAL_ADVICE,
  forbidden: `Use a token without restrictions: ${PROGRAM} login`,
  not_found: "Check the receiver's name or id.",
};
const OUTCOME_COLORS = { delivered: green, retrying: yellow, put_aside: red } as const;

/** @param local where deliveries are posted, as it is printed. */
export function printWebhooksJson(forwarder: Forwarder, local: string): Output {
  forwarder.on("ready", ({ id, url }) =>
    printEvent({ event: "ready", receiverId: id, url, local }),
  );
  forwarder.on("attempt", ({ id, receivedAt, outcome, attempt, status, durationMs, problem }) =>
    printEvent({
      event: "delivery",
      id,
      receivedAt,
      outcome,
      attempt,
      status,
      durationMs,
      problem,
    }),
  );
  forwarder.on("disconnected", (reason) => printEvent({ event: "disconnected", reason }));
  forwarder.on("reconnected", () => printEvent({ event: "reconnected" }));
  return { end: (rejection) => printRejectionJson(rejection) };
}

export function printWebhooksLines(forwarder: Forwarder, local: string, level: Level): Output {
  const print = createLinePrinter(level);
  forwarder.on("ready", ({ url }) => print("error", `Forwarding ${url} -> ${local}`));
  const attempts = new FailedAttempts();
  forwarder.on("attempt", (attempt) => {
    const { id, outcome, problem, status } = attempt;
    if (outcome !== "retrying") {
      attempts.clear();
      print(outcome === "delivered" ? "info" : "warn", formatDelivery(attempt));
    } else {
      // While nothing listens, a delivery is retried indefinitely.
      const isPrinted = attempts.add(`${id} ${status} ${problem}`);
      print(isPrinted ? "warn" : "debug", formatDelivery(attempt));
    }
  });
  forwarder.on("disconnected", (reason) => print("warn", `disconnected: ${reason}; reconnecting`));
  forwarder.on("reconnected", () => print("info", "reconnected"));
  return { end: (rejection) => printRejectionLines(rejection, ADVICE) };
}

export function showWebhooksScreen(forwarder: Forwarder, local: string): Output {
  let url = "…";
  let state = yellow("connecting");
  let delivered = 0;
  let skipped = 0;
  let recent: DeliveryAttempt[] = [];
  const view = new TerminalView(() => [
    bold("underpass webhooks") + dim("   q quits"),
    "",
    `State       ${state}`,
    `Forwarding  ${bold(url)} -> ${local}`,
    `Delivered   ${delivered}${skipped === 0 ? "" : yellow(`   gave up ${skipped}`)}`,
    "",
    ...recent.map((attempt) => getColor(attempt)(escapeControls(formatDelivery(attempt)))),
  ]);
  const show = (text: string): void => {
    state = text;
    view.draw();
  };
  forwarder.on("ready", (receiver) => {
    url = escapeControls(receiver.url);
    show(green("online"));
  });
  forwarder.on("disconnected", (reason) =>
    show(yellow(`reconnecting (${escapeControls(reason)})`)),
  );
  forwarder.on("reconnected", () => show(green("online")));
  forwarder.on("attempt", (attempt) => {
    if (attempt.outcome === "delivered") delivered += 1;
    if (attempt.outcome === "put_aside") skipped += 1;
    // A later attempt of a delivery replaces the earlier ones.
    const others = recent.filter(
      (earlier) => earlier.attempt > attempt.attempt || earlier.id !== attempt.id,
    );
    recent = [attempt, ...others].slice(0, DELIVERIES_SHOWN);
    view.draw();
  });
  view.draw();
  return {
    end: (rejection) =>
      view.end(
        rejection ? red(escapeControlsInLines(formatRejection(rejection, ADVICE))) : "Stopped.",
      ),
  };
}

function formatDelivery({
  id,
  outcome,
  attempt,
  status,
  durationMs,
  problem,
  receivedAt,
}: DeliveryAttempt): string {
  const why = problem === undefined ? "" : ` (${problem})`;
  const line = `${status ?? "no answer"} ${id} ${durationMs} ms, arrived at ${receivedAt}`;
  switch (outcome) {
    case "delivered":
      return line;
    case "retrying":
      return `${line}; attempt ${attempt} failed, retrying${why}`;
    case "put_aside":
      return `${line}; gave up after ${attempt} attempts${why}; use --since to deliver it again`;
  }
}

function getColor({ outcome }: DeliveryAttempt): (text: string) => string {
  return OUTCOME_COLORS[outcome];
}
