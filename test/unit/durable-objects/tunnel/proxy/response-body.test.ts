import { expect, test } from "vitest";
import { getTruncationSignal } from "../../../../../durable-objects/tunnel/proxy/response-body.ts";

test.each([
  ["aborts a body of which the visitor notices it", "text/html", true, "abort"],
  ["cuts the connection of other bodies", "text/html", false, "cut"],
  ["ends an event stream", "text/event-stream", false, "end"],
  ["ends an event stream in any case of its letters", "Text/Event-Stream", false, "end"],
])("a truncation %s", (_, contentType, isVisible, signal) => {
  expect(getTruncationSignal([["content-type", contentType]], isVisible)).toBe(signal);
});
