import { expect, test } from "vitest";
import { getLineText } from "../../../../agent/screen/line.ts";
import { compareReplay } from "../../../../agent/screen/replay-messages.ts";
import { formatRequests } from "../../../../agent/screen/request-lines.ts";
import { RequestList } from "../../../../agent/screen/request-list.ts";
import { createReport } from "../../../harness/agent/request-report.ts";

const ABORTED = {
  ...createReport("/report"),
  ...{ status: 0, bytesOut: 0, abortReason: "the visitor disconnected" },
};

test("a request whose visitor did not wait for the response has no status, and says why", () => {
  const requests = new RequestList();
  requests.add("shop", createReport("/ok"), 0);
  requests.add("shop", ABORTED, 0);
  requests.filter = "state:aborted";
  const tunnels = [{ name: "shop" }];
  const lines = formatRequests({ requests, tunnels, nowMs: 0 }, 80, 10).map(getLineText);
  expect(lines).toEqual([
    expect.stringMatching(/ --- GET +12 ms +0 B {2}\/report {2}the visitor disconnected$/),
  ]);
});

test("the replay of a request that had no response is compared with nothing", () => {
  expect(compareReplay(ABORTED, createReport("/report"))).toBe(
    "200, 12 ms; the first time, the visitor did not wait for it",
  );
});
