import { describe, expect, test } from "vitest";
import { untilAborted } from "../../../bench/stop-signals.ts";

describe("work that a signal can end", () => {
  test("does not begin after the signal has aborted", async () => {
    let hasBegun = false;
    const work = () => Promise.resolve((hasBegun = true));
    const stopped = AbortSignal.abort(new Error("stopped before"));
    await expect(untilAborted(stopped, work)).rejects.toThrow("stopped before");
    expect(hasBegun).toBe(false);
  });

  test("is not waited for once the signal aborts", async () => {
    const stopping = new AbortController();
    const waiting = untilAborted(stopping.signal, () => new Promise(() => undefined));
    stopping.abort(new Error("stopped meanwhile"));
    await expect(waiting).rejects.toThrow("stopped meanwhile");
  });

  test("returns its result otherwise", async () => {
    const work = () => Promise.resolve("done");
    expect(await untilAborted(new AbortController().signal, work)).toBe("done");
    expect(await untilAborted(undefined, work)).toBe("done");
  });
});
