/** What a self-hosted server tells the isolates of its Worker about the disk of the data directory, every second. */

/**
 * `low`: less than the reserve is free. `critical`: half of the reserve is used up. `full`: neither the objects nor the database
 * can write.
 */
const DISK_SHORTAGES = ["low", "critical", "full"] as const;
export type DiskShortage = (typeof DISK_SHORTAGES)[number];

export function toDiskPath(shortage: DiskShortage): string {
  return `/disk/${shortage}`;
}

/** @returns undefined for the path of another request. */
export function parseDiskPath(pathname: string): DiskShortage | undefined {
  return DISK_SHORTAGES.find((shortage) => toDiskPath(shortage) === pathname);
}
