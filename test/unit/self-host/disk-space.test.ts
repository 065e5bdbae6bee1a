import { expect, test, vi } from "vitest";
import { DiskWatch, readDiskSpace, type DiskSpace } from "../../../self-host/disk-space.ts";
import type { DiskShortage } from "../../../protocol/self-host/disk-shortage.ts";
import { ROOT } from "../../../self-host/build/build.ts";

const GIBIBYTE = 1024 ** 3;
const MEBIBYTE = 1024 ** 2;

function watch(space: DiskSpace, reserveBytes?: number) {
  const reportLow = vi.fn<(shortage: DiskShortage) => Promise<void>>(() => Promise.resolve());
  const lines: string[] = [];
  const record = (message: string) => void lines.push(message);
  const log = { info: record, warn: record, error: record, forward: record };
  const readSpace = () => Promise.resolve(space);
  const disk = new DiskWatch({ readSpace, reserveBytes, reportLow, log });
  return { disk, reportLow, lines };
}

test("a disk that is almost full is reported at each check and logged once, as is its recovery", async () => {
  const space = { freeBytes: 120 * MEBIBYTE, sizeBytes: 100 * GIBIBYTE };
  const { disk, reportLow, lines } = watch(space, 100 * MEBIBYTE);
  await disk.check();
  expect(reportLow).not.toHaveBeenCalled();
  space.freeBytes = 99 * MEBIBYTE;
  await disk.check();
  await disk.check();
  expect(reportLow).toHaveBeenCalledTimes(2);
  space.freeBytes = 109 * MEBIBYTE;
  await disk.check();
  expect(reportLow).toHaveBeenCalledTimes(3);
  expect(lines).toEqual([expect.stringMatching(/^disk: almost full/)]);
  space.freeBytes = 111 * MEBIBYTE;
  await disk.check();
  await disk.check();
  expect(reportLow).toHaveBeenCalledTimes(3);
  expect(lines.slice(1)).toEqual(["disk: there is enough free space again"]);
});

test("a full disk is logged once while its last bytes are written and freed", async () => {
  const space = { freeBytes: MEBIBYTE - 1, sizeBytes: GIBIBYTE };
  const { disk, reportLow, lines } = watch(space, 100 * MEBIBYTE);
  await disk.check();
  space.freeBytes = 2 * MEBIBYTE;
  await disk.check();
  expect(reportLow).toHaveBeenLastCalledWith("full");
  space.freeBytes = 4 * MEBIBYTE;
  await disk.check();
  expect(reportLow).toHaveBeenLastCalledWith("critical");
  expect(lines).toEqual([expect.stringMatching(/^disk: full/)]);
});

test("half of the reserve is what objects may use of it", async () => {
  const space = { freeBytes: 51 * MEBIBYTE, sizeBytes: 100 * GIBIBYTE };
  const { disk, reportLow } = watch(space, 100 * MEBIBYTE);
  await disk.check();
  expect(reportLow).toHaveBeenLastCalledWith("low");
  space.freeBytes = 49 * MEBIBYTE;
  await disk.check();
  expect(reportLow).toHaveBeenLastCalledWith("critical");
  space.freeBytes = 51 * MEBIBYTE;
  await disk.check();
  expect(reportLow).toHaveBeenLastCalledWith("low");
});

test.each([
  ["a large disk", 1024 * GIBIBYTE, GIBIBYTE],
  ["a small disk", 10 * GIBIBYTE, GIBIBYTE / 2],
])("the reserve of %s", async (_, sizeBytes, reserveBytes) => {
  const space = { freeBytes: reserveBytes, sizeBytes };
  const { disk, reportLow } = watch(space);
  await disk.check();
  expect(reportLow).not.toHaveBeenCalled();
  space.freeBytes -= 1;
  await disk.check();
  expect(reportLow).toHaveBeenCalledOnce();
});

test("without a reserve the disk may become full, which is an error", async () => {
  const space = { freeBytes: MEBIBYTE, sizeBytes: GIBIBYTE };
  const { disk, reportLow, lines } = watch(space, 0);
  await disk.check();
  expect(reportLow).not.toHaveBeenCalled();
  space.freeBytes -= 1;
  await disk.check();
  await disk.check();
  expect(reportLow.mock.calls).toEqual([["full"], ["full"]]);
  expect(lines).toEqual(["disk: full; tunnels and changes fail until there is space again"]);
});

test("checks that fail are logged once, and go on", async () => {
  const { disk, reportLow, lines } = watch({ freeBytes: MEBIBYTE, sizeBytes: GIBIBYTE });
  reportLow.mockRejectedValue(new Error("workerd restarts"));
  await disk.check();
  await disk.check();
  expect(lines.slice(1)).toEqual(["disk: a check failed: workerd restarts"]);
  reportLow.mockResolvedValue();
  await disk.check();
  expect(reportLow).toHaveBeenCalledTimes(3);
});

test("a stopped watch checks no more", async () => {
  const { disk, reportLow } = watch({ freeBytes: 0, sizeBytes: GIBIBYTE });
  const running = disk.run();
  disk.stop();
  await running;
  expect(reportLow).not.toHaveBeenCalled();
});

test("the space of a real disk", async () => {
  const { freeBytes, sizeBytes } = await readDiskSpace(ROOT);
  expect(freeBytes).toBeGreaterThan(0);
  expect(sizeBytes).toBeGreaterThan(freeBytes);
});
