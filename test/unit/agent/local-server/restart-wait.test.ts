/** The rules of the wait for a local server that restarts, with attempts that the test answers. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  RestartWait,
  RESTART_MAX_MS,
  type Done,
} from "../../../../agent/local-server/restart-wait.ts";

const refusal = (code = "ECONNREFUSED"): Error => Object.assign(new Error(code), { code });

let wait: RestartWait;
let changes: boolean[];
/** The error of the next attempts; null: the server accepts them. */
let error: Error | null;
let attempts: string[];
let outcomes: Record<string, string>;

beforeEach(() => {
  vi.useFakeTimers();
  changes = [];
  attempts = [];
  outcomes = {};
  error = null;
  wait = new RestartWait((isListening) => changes.push(isListening));
});
afterEach(() => void vi.useRealTimers());

function connect(name: string): () => void {
  return wait.connect<string>(
    (done) => {
      attempts.push(name);
      if (error) done(error, null);
      else done(null, "connected");
    },
    (...[failure, connected]) => (outcomes[name] = failure ? failure.message : connected),
  );
}

/** The server has accepted a connection, and refuses further ones. */
function stopServer(code?: string): void {
  connect("before");
  error = refusal(code);
  attempts = [];
}

describe("a server that has accepted no connection yet", () => {
  test("is not waited for", () => {
    error = refusal();
    connect("a");
    expect(outcomes).toEqual({ a: "ECONNREFUSED" });
    expect(changes).toEqual([]);
  });

  test("is waited for once a check has found that it accepts connections", () => {
    wait.reportAccepted();
    error = refusal();
    connect("a");
    expect(outcomes).toEqual({});
  });
});

describe("while a server restarts", () => {
  test.each(["ECONNREFUSED", "ECONNRESET", "ENOENT"])("%s lets a connection wait", (code) => {
    stopServer(code);
    connect("a");
    expect(outcomes).not.toHaveProperty("a");
    expect(changes).toEqual([false]);
    error = null;
    vi.advanceTimersByTime(100);
    expect(outcomes).toHaveProperty("a", "connected");
    expect(changes).toEqual([false, true]);
  });

  test.each(["ENOTFOUND", "EACCES", "ETIMEDOUT", "CERT_HAS_EXPIRED"])(
    "%s is no sign of a restart",
    (code) => {
      stopServer(code);
      connect("a");
      expect(outcomes).toHaveProperty("a", code);
      expect(changes).toEqual([]);
    },
  );

  test("one connection tries for all that wait, and all others follow as soon as it is accepted", () => {
    stopServer();
    for (const name of ["a", "b", "c"]) connect(name);
    expect(attempts).toEqual(["a"]);
    vi.advanceTimersByTime(300);
    expect(attempts).toEqual(["a", "a", "b", "c"]);
    error = null;
    vi.advanceTimersByTime(100);
    expect(attempts).toEqual(["a", "a", "b", "c", "a", "b", "c"]);
    expect(outcomes).toMatchObject({ a: "connected", b: "connected", c: "connected" });
    expect(changes).toEqual([false, true]);
  });

  test("a check that finds it ends the wait", () => {
    stopServer();
    connect("a");
    error = null;
    wait.reportAccepted();
    expect(outcomes).toHaveProperty("a", "connected");
  });

  test("a canceled connection is not attempted again", () => {
    stopServer();
    connect("a")();
    vi.advanceTimersByTime(1_000);
    expect(attempts).toEqual(["a"]);
    expect(outcomes).not.toHaveProperty("a");
  });

  test("an attempt that is refused after it was canceled is not repeated", () => {
    stopServer();
    let refuse: Done<string> = () => {};
    const done = vi.fn();
    const cancel = wait.connect<string>((attempted) => (refuse = attempted), done);
    cancel();
    refuse(refusal(), null);
    expect(done).toHaveBeenCalledOnce();
    error = null;
    connect("b");
    expect(outcomes).toHaveProperty("b", "connected");
    expect(done).toHaveBeenCalledOnce();
  });

  test("the end of the tunnel fails those that wait, and later ones do not wait", () => {
    stopServer();
    connect("a");
    wait.end();
    connect("b");
    expect(outcomes).toMatchObject({ a: "ECONNREFUSED", b: "ECONNREFUSED" });
    expect(vi.getTimerCount()).toBe(0);
  });

  test("a Unix socket with a full queue is waited for, and not reported", () => {
    stopServer("EAGAIN");
    connect("a");
    error = null;
    vi.advanceTimersByTime(100);
    expect(outcomes).toHaveProperty("a", "connected");
    expect(changes).toEqual([]);
  });
});

describe("after three seconds", () => {
  test("all that wait fail, also those that came later", () => {
    stopServer();
    connect("early");
    vi.advanceTimersByTime(RESTART_MAX_MS - 100);
    connect("late");
    expect(outcomes).not.toHaveProperty("early");
    vi.advanceTimersByTime(100);
    expect(outcomes).toMatchObject({ early: "ECONNREFUSED", late: "ECONNREFUSED" });
    expect(vi.getTimerCount()).toBe(0);
  });

  test("further ones fail at once, until the server accepts one, after which it is waited for again", () => {
    stopServer();
    connect("a");
    vi.advanceTimersByTime(RESTART_MAX_MS);
    connect("b");
    expect(outcomes).toHaveProperty("b", "ECONNREFUSED");
    error = null;
    connect("c");
    expect(outcomes).toHaveProperty("c", "connected");
    expect(changes).toEqual([false, true]);
    error = refusal();
    connect("d");
    expect(outcomes).not.toHaveProperty("d");
    expect(changes).toEqual([false, true, false]);
  });

  test("a connection fails that was refused again and again by a server that accepts others", () => {
    stopServer();
    connect("a");
    for (let ms = 0; ms < RESTART_MAX_MS; ms += 500) {
      vi.advanceTimersByTime(500);
      wait.reportAccepted();
    }
    expect(outcomes).toHaveProperty("a", "ECONNREFUSED");
  });
});
