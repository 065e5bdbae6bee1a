/** Copies of rows arrive in any order: the version of the row decides which one is stored. */

/** A read that started before a change must not overwrite the published change. The same version again changes nothing. */
export function pickNewest<Copy extends { version: number }>(
  stored: Copy | undefined,
  offered: Copy,
): Copy {
  return stored !== undefined && stored.version >= offered.version ? stored : offered;
}
