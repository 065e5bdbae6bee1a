import { afterEach, expect, test, vi } from "vitest";
import { printGroupJson, printGroupLines } from "../../../../agent/output/start.ts";
import { RejectionError } from "../../../../agent/rejection-error.ts";
import { TunnelGroup } from "../../../../agent/start/tunnel-group.ts";

afterEach(() => vi.restoreAllMocks());

test("after the problems of a changed file, a line of its own says that the tunnels stay", () => {
  const printed: string[] = [];
  for (const stream of [process.stdout, process.stderr])
    vi.spyOn(stream, "write").mockImplementation((text) => printed.push(String(text)) > 0);
  const problem = "underpass.yml:5:25: unknown key subdomian; did you mean subdomain?";
  const message = `${problem}\nthe tunnels stay as they are`;
  printGroupLines(new TunnelGroup(), "info").reloadFailed(problem);
  printGroupJson(new TunnelGroup()).reloadFailed(problem);
  expect(printed[0]).toBe(`underpass: ${message}\n`);
  expect(JSON.parse(printed[1]!)).toMatchObject({ event: "reload_failed", message });
});

test("as JSON, the rejection of one tunnel has the fields that it has without a file", () => {
  const write = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  const group = new TunnelGroup();
  printGroupJson(group);
  const details = { subcode: "port_taken" };
  group.emit("tunnelRejected", "db", new RejectionError("duplicate_name", "it is taken", details));
  const { time: _, ...event } = JSON.parse(String(write.mock.lastCall![0])) as { time: string };
  expect(event).toEqual({
    event: "rejected",
    tunnel: "db",
    reason: "duplicate_name",
    subcode: "port_taken",
    message: "it is taken",
  });
});
