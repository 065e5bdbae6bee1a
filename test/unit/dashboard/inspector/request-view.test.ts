import { expect, test } from "vitest";
import { CaptureList } from "../../../../dashboard/inspector/capture-list.ts";
import {
  RequestView,
  type CaptureListener,
  type RequestSelection,
} from "../../../../dashboard/inspector/request-view.ts";
import { parseCaptureFilter } from "../../../../protocol/captures/filter.ts";
import type { CaptureSummary } from "../../../../protocol/schemas/inspector/captures.ts";
import { buildCaptureSummary, getCaptureId } from "../../../harness/tunnel/capture.ts";

const PAGE_ROWS = 500;

interface StartedView {
  view: RequestView;
  receive: (...captures: CaptureSummary[]) => void;
  trim: (maxRows: number) => void;
}

/** Stands still, so that a filter is applied at once, unless a test moves it on. */
const clock = { nowMs: 0 };

/** A view of a store without a connection. @param older what the server has before the requests of the store. */
function startView(
  stored: CaptureSummary[],
  older: CaptureSummary[] = [],
  schedule = (update: () => void): unknown => update(),
): StartedView {
  const newest = new CaptureList();
  for (const capture of stored) newest.put(capture);
  let listener: CaptureListener | undefined;
  const store = {
    newest,
    hasOlder: older.length > 0,
    listen(added: CaptureListener) {
      listener = added;
      return () => {};
    },
  };
  const view = new RequestView({
    store,
    list: ({ after = "" }) =>
      Promise.resolve(older.filter(({ id }) => id < after).slice(0, PAGE_ROWS)),
    schedule,
    now: () => clock.nowMs,
  });
  view.connect();
  return {
    view,
    receive(...captures) {
      for (const capture of captures) {
        newest.put(capture);
        listener?.onPut(capture);
      }
    },
    trim(maxRows) {
      newest.keepNewest(maxRows);
      listener?.onTrim(newest.oldestId ?? "");
    },
  };
}

function parseSelection(filter: string): RequestSelection {
  const { matches, query } = parseCaptureFilter(filter);
  return { matches, query, only: undefined, foundIds: undefined };
}

function getPaths(view: RequestView): string[] {
  return Array.from({ length: view.count }, (_, index) => view.getRow(index)?.path ?? "");
}

const build = (from: number, to: number, event: Partial<CaptureSummary> = {}) =>
  Array.from({ length: to - from + 1 }, (_, index) => buildCaptureSummary(to - index, event));

test("new requests that match the filter appear at the top", () => {
  const { view, receive } = startView(build(1, 3));
  view.select(parseSelection("-path:/4"));
  receive(buildCaptureSummary(4), buildCaptureSummary(5));
  expect(getPaths(view)).toEqual(["/5", "/3", "/2", "/1"]);
  expect([view.count, view.searchedCount]).toEqual([4, 5]);
});

test("a request disappears when its new state no longer matches", () => {
  const { view, receive } = startView([buildCaptureSummary(1, { state: "open", status: null })]);
  view.select(parseSelection("state:open"));
  expect(view.count).toBe(1);
  receive(buildCaptureSummary(1, { state: "complete" }));
  expect(view.count).toBe(0);
});

test("while the view does not follow, new requests are only counted and states still change", () => {
  const { view, receive } = startView([
    buildCaptureSummary(1, { state: "open", status: null }),
    buildCaptureSummary(2),
  ]);
  view.freeze("reading");
  receive(...build(3, 7), buildCaptureSummary(1, { state: "complete", status: 201 }));
  expect(getPaths(view)).toEqual(["/2", "/1"]);
  expect(view.getRow(1)?.status).toBe(201);
  expect(view.newCount).toBe(5);
  view.follow();
  expect(view.count).toBe(7);
  expect(view.newCount).toBe(0);
});

test("a view that stops following shows the rows that it showed, without those that arrived since the last frame", () => {
  const frames: (() => void)[] = [];
  const { view, receive } = startView(build(1, 3), [], (update) => frames.push(update));
  const showFrame = () => frames.splice(0).forEach((update) => update());
  receive(buildCaptureSummary(4));
  showFrame();
  receive(buildCaptureSummary(5), buildCaptureSummary(6));
  view.freeze("reading");
  expect([getPaths(view), view.newCount]).toEqual([["/4", "/3", "/2", "/1"], 2]);
  view.follow();
  expect(view.count).toBe(6);
});

test("a paused view stays as it is while the store drops old requests", () => {
  const { view, receive, trim } = startView(build(1, 5));
  view.freeze("paused");
  view.freeze("reading");
  expect(view.state).toBe("paused");
  receive(...build(6, 12));
  trim(5);
  expect(getPaths(view)).toEqual(["/5", "/4", "/3", "/2", "/1"]);
  view.follow();
  expect(getPaths(view)).toEqual(["/12", "/11", "/10", "/9", "/8"]);
});

test("a view that does not follow lists no request twice when older ones are loaded after the store dropped some", async () => {
  const { view, receive, trim } = startView(build(3, 7), build(1, 7));
  view.freeze("reading");
  receive(...build(8, 12));
  trim(5);
  await view.loadOlder();
  expect(getPaths(view)).toEqual(["/7", "/6", "/5", "/4", "/3", "/2", "/1"]);
  view.follow();
  expect(view.count).toBe(12);
});

test("older requests continue the list without a gap, down to the oldest one", async () => {
  const { view } = startView(build(1_001, 1_010), build(1, 1_000));
  expect(view.hasOlder).toBe(true);
  await view.loadOlder();
  expect(view.count).toBe(510);
  expect(view.getRow(10)?.id).toBe(getCaptureId(1_000));
  await view.loadOlder();
  await view.loadOlder();
  expect(view.count).toBe(1_010);
  expect(view.hasOlder).toBe(false);
  expect(new Set(getPaths(view)).size).toBe(1_010);
});

test("cleared requests are hidden until they are shown again", () => {
  const { view, receive } = startView(build(1, 5));
  view.clear();
  expect(view.count).toBe(0);
  receive(buildCaptureSummary(6));
  expect(getPaths(view)).toEqual(["/6"]);
  view.undoClear();
  expect(view.count).toBe(6);
});

test("requests that arrive while thousands are filtered are neither lost nor repeated", async () => {
  const { view, receive } = startView(build(1, 10_000));
  const slow = (capture: CaptureSummary) => {
    clock.nowMs += 0.01;
    return capture.path.endsWith("7");
  };
  view.select({ ...parseSelection(""), matches: slow });
  expect(view.isFiltering).toBe(true);
  receive(buildCaptureSummary(10_007), buildCaptureSummary(10_008));
  while (view.isFiltering) await new Promise((resolve) => setTimeout(resolve));
  expect(view.count).toBe(1_001);
  expect(view.getRow(0)?.path).toBe("/10007");
});
