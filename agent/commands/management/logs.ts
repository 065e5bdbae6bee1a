/** `underpass logs [tunnel]`: requests as they happen, and stored ones. */
import { parseCaptureFilter } from "../../../protocol/captures/filter.ts";
import type { CaptureSummary } from "../../../protocol/schemas/inspector/captures.ts";
import { CaptureLog, readPastCaptures, type PastSelection } from "../../management/capture-log.ts";
import { CaptureWatch } from "../../management/capture-watch.ts";
import { findTunnel } from "../../management/find-tunnel.ts";
import type { ManagementApi } from "../../management/management-api.ts";
import { openManagementApi } from "../../management/open-management-api.ts";
import { TunnelNames } from "../../management/tunnel-names.ts";
import { watchForStop } from "../watch-for-stop.ts";
import { rejectExtraArguments, UsageError } from "../../options.ts";
import { LOG_JSON, createLogLines, type LogOutput } from "../../output/management/logs.ts";
import { printError, printRejectionJson } from "../../output/output.ts";
import { RejectionError } from "../../rejection-error.ts";
import type { Input } from "../command.ts";
import { PAST_LIMIT_DEFAULT, type LOGS } from "../table/management/logs.ts";

type Values = Input<typeof LOGS.options>["values"];

export async function run({ values, positionals }: Input<typeof LOGS.options>): Promise<number> {
  const [name, ...extra] = positionals;
  rejectExtraArguments(extra);
  const api = await openManagementApi(values);
  rejectQueryField(values, api);
  const tunnel = name === undefined ? undefined : await findTunnel(api, name);
  const selection = {
    tunnelId: tunnel?.id,
    filter: values.filter ?? parseCaptureFilter(""),
  };
  const output = values.json ? LOG_JSON : createLogLines(tunnel === undefined);
  const printer = new CapturePrinter(output, new TunnelNames(api));
  const past = getPastSelection(values);
  const isFollowing = past === undefined || values.follow;
  if (past !== undefined && !isFollowing) {
    const captures = await readPastCaptures(api, selection, past);
    captures.forEach((capture) => printer.print(capture));
    await printer.end();
    if (captures.length === 0) output.noMatch();
    if (captures.length === past.limit && values.limit === undefined) {
      printError(`only the newest ${past.limit} requests are shown; use --limit for more`);
    }
    return 0;
  }

  const watch = new CaptureWatch(api, tunnel?.id);
  const log = new CaptureLog(api, watch, selection, past);
  log.on("ready", () => output.ready());
  log.on("capture", (capture) => printer.print(capture));
  log.on("missed", (count) => output.missed(count));
  log.on("disconnected", (reason) => output.disconnected(reason));
  log.on("reconnected", () => output.reconnected());
  const endWatch = watchForStop(() => log.stop());
  try {
    await log.run();
    await printer.end();
    return 0;
  } catch (error) {
    if (!values.json || !(error instanceof RejectionError)) throw error;
    printRejectionJson(error);
    return 1;
  } finally {
    endWatch();
  }
}

function rejectQueryField({ filter }: Values, { credential }: ManagementApi): void {
  if (credential.kind !== "capability token" || !filter?.fields.includes("query")) return;
  throw new UsageError(
    "--filter: a capability token does not give access to queries; set UNDERPASS_ACCESS_TOKEN to filter by them",
  );
}

/** @returns undefined when only new requests are to be shown. */
function getPastSelection({ since, limit }: Values): PastSelection | undefined {
  if (since === undefined && limit === undefined) return undefined;
  return { since: since === "all" ? undefined : since, limit: limit ?? PAST_LIMIT_DEFAULT };
}

/** Prints requests in their order, although the name of a tunnel may have to be read first. */
class CapturePrinter {
  readonly #output: LogOutput;
  readonly #names: TunnelNames;
  #last: Promise<void> = Promise.resolve();

  constructor(output: LogOutput, names: TunnelNames) {
    this.#output = output;
    this.#names = names;
  }

  print(capture: CaptureSummary): void {
    this.#last = this.#last.then(async () => {
      this.#output.request(capture, await this.#names.find(capture.tunnel_id));
    });
  }

  /** Resolves when all requests are printed. */
  end(): Promise<void> {
    return this.#last;
  }
}
