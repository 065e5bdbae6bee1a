import { expect, test } from "vitest";
import {
  applySuggestion,
  completeFilter,
} from "../../../../dashboard/inspector/filter-completion.ts";
import {
  addTerm,
  formatFilterTerm,
  getAlternatives,
  toggleAlternative,
} from "../../../../dashboard/inspector/filter-text.ts";
import { parseCaptureFilter } from "../../../../protocol/captures/filter.ts";
import { buildCaptureSummary } from "../../../harness/tunnel/capture.ts";

const rows = [
  buildCaptureSummary(1, { method: "POST", path: "/a b" }),
  buildCaptureSummary(2, { method: "POST", status: 404 }),
  buildCaptureSummary(3, { method: "GET", status: 404 }),
  buildCaptureSummary(4, { method: "GET", status: 404, error: "agent_offline" }),
];

function complete(filter: string, caret = filter.length): string[] {
  return completeFilter(filter, caret, rows).suggestions.map(({ text }) => text);
}

test("an alternative is added to the term of its field, and removed from it", () => {
  const one = toggleAlternative("-path:/health", "status", "4xx");
  expect(one).toBe("-path:/health status:4xx");
  const two = toggleAlternative(one, "status", "5xx");
  expect(two).toBe("-path:/health status:4xx,5xx");
  expect(getAlternatives(two, "status")).toEqual(["4xx", "5xx"]);
  expect(toggleAlternative(toggleAlternative(two, "status", "4xx"), "status", "5xx")).toBe(
    "-path:/health",
  );
});

test("a term is added once", () => {
  expect(addTerm("method:GET", "status:404")).toBe("method:GET status:404");
  expect(addTerm("method:GET", "method:GET")).toBe("method:GET");
});

test.each(["/plain", "/a b", "/a,b", '/a"b', '/"', "/a:b c"])(
  "the term of any path matches it: %s",
  (path) => {
    const { matches } = parseCaptureFilter(formatFilterTerm("path", path));
    expect(matches(buildCaptureSummary(1, { path }))).toBe(true);
  },
);

test("fields are suggested by their beginning, negated ones too", () => {
  expect(complete("st")).toEqual(["status:", "state:"]);
  expect(complete("method:GET -du")).toEqual(["-duration:"]);
  expect(complete("")).toContain("path:");
});

test("the values of the listed requests are suggested, the most common first", () => {
  expect(complete("method:")).toEqual(["method:POST", "method:GET"]);
  expect(complete("status:").slice(0, 2)).toEqual(["status:404", "status:200"]);
  expect(complete("status:4xx,50")).toEqual([]);
  expect(complete("status:404,2")).toEqual(["status:404,200", "status:404,2xx"]);
  expect(complete("error:")).toEqual(["error:agent_offline"]);
  expect(complete("path:/a")).toEqual(['path:"/a b"']);
});

test("a suggestion replaces the term at the caret", () => {
  const filter = "method:GET sta path:/x";
  const { term, suggestions } = completeFilter(filter, 14, rows);
  expect(suggestions.map(({ text }) => text)).toEqual(["status:", "state:"]);
  const applied = applySuggestion(filter, term, "status:");
  expect(applied).toEqual({ filter: "method:GET status: path:/x", caret: 18 });
});
